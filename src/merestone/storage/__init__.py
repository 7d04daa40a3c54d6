"""Bytes by name in a store: local disk now, object stores later. Not here: what the bytes mean."""
