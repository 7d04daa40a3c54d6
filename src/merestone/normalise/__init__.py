"""A delivered batch in the contract's form: cast (every row), CRS and snap (candidates).

Not here: reading files (`source`), judging what was cast (`gate`).
"""
