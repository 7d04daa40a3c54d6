"""The publication file as a value, and reading it. Not here: doing what it says (`line`)."""
