"""Merkle trees over events, and what they prove. Not here: files of events (`store`)."""
