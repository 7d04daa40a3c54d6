"""The NumPy path behind `kernel`, for machines without a C compiler.

Not here: the compiled path (`compiled`), the public functions and their documentation (`kernel`).
"""
