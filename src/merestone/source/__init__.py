"""A delivery as Arrow batches with geometry as WKB, whatever file it came in.

Not here: the contract, casts and transforms (`normalise`).
"""
