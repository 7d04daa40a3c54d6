"""What a published version is, and reading it. Not here: writing one (`writer`), judging a delivery (`gate`), deciding what changed (`change`)."""
