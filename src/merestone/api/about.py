"""What this installation runs on.

Not here: the versions that a run records (`line.environment`).
"""

from __future__ import annotations

from merestone.geometry import kernel


def about() -> str:
    """What answers questions about geometry here: the compiled kernel, or NumPy, which is slower."""
    return kernel.path()
