"""Columns without geometry: single Arrow arrays and their buffers, rows as bytes, hashes of rows; home of the compiled hashing.

Not here: geometry (`geometry`), what a column means to a contract (`normalise`), which attributes a digest counts (`identity`).
"""
