"""What a published version is, and reading it. Not here: writing one (`publish`), judging a delivery (`gate`), deciding what changed (`change`)."""
