"""WKB columns: decode, the one grid rounding, canonical form, bounds, distances, Hilbert order; home of the compiled kernel.

Not here: what a geometry must be (`gate`), reference systems (`normalise`), keys and attributes of a feature (`identity`).
"""
