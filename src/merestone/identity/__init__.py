"""What a feature is called and what it contains: key, canonical bytes, digest.

Not here: the geometry's canonical form (`geometry`), casting a delivery (`normalise`), what a difference means (`change`).
"""
