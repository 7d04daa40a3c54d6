"""Expiry of events after a window. Not here: reading or writing events (`store`)."""
