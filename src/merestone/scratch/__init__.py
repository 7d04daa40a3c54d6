"""Rows that rest on disk while a run works. Not here: anything that outlives the run."""
