"""The agreement at the boundary as a value: its document, definition, checks and words.

Not here: whether a delivery keeps it (`gate`), how a dataset is made (`publication`).
"""
