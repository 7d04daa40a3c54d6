"""Drafts of a contract and a publication file, made from a delivery. Not here: judging a delivery against a contract (`gate`)."""
