"""The event as a record, and building columns of events. Not here: files."""
