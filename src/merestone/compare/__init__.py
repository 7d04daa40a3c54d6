"""Two sides compared, and a change replayed onto a copy. Not here: publishing (`line`)."""
