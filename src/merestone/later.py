"""Modules that are loaded when something of them is first asked for: heavy ones that most commands have no use for.

Type checkers and the check of layers see the import itself, which stands beside each call under `TYPE_CHECKING`.
Not here: which modules those are; tests/cli/test_start.py holds what commands load.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """Stands for a module; gives what that has, and loads it for the first of it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def later(name: str) -> Any:
    """The module of that name, loaded when something of it is asked for."""
    return _Later(name)
