"""The two paths of the compiled extensions and NumPy: which are here, and work done on one of them."""

from __future__ import annotations

from contextlib import contextmanager

from merestone.columnar import fallback as plain_hashing
from merestone.columnar import hashing, lookup, plain_lookup
from merestone.geometry import fallback as plain_kernel
from merestone.geometry import kernel

MODULES = {
    "compiled": (hashing.at_work, kernel.at_work, lookup.at_work),
    "numpy": (plain_hashing, plain_kernel, plain_lookup),
}
if "numpy" in (hashing.NAME, kernel.NAME, lookup.NAME):  # no compiler when this was installed, or built from other sources
    del MODULES["compiled"]
PATHS = tuple(MODULES)


DOORS = (hashing, kernel, lookup)


@contextmanager
def on(path):
    """All front doors answer on this path."""
    before = [(door.at_work, door.NAME) for door in DOORS]
    for door, module in zip(DOORS, MODULES[path], strict=True):
        door.at_work, door.NAME = module, path
    try:
        yield
    finally:
        for door, (module, name) in zip(DOORS, before, strict=True):
            door.at_work, door.NAME = module, name
