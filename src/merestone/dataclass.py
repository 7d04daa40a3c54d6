"""`dataclass` as the standard library has it, for a fraction of its time: a class shares its methods with all others, and one is compiled for it.

The library compiles six methods for each frozen class, one after the other: half a millisecond, and a command has 250 of these classes. What
differs between classes is `__init__`; the other methods ask the class for its fields.
Not here: fields, copies and the rest of `dataclasses`, which is used as it is, and takes these classes for its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414, TID251 - it is to be imported from here
else:
    import dataclasses
    from collections.abc import Callable, Sequence
    from operator import attrgetter
    from reprlib import recursive_repr

    class _Factory:
        """Stands in a signature for a default that is made anew for each object."""

        def __repr__(self) -> str:
            return "<factory>"

    _FACTORY: Final = _Factory()
    _set: Final = object.__setattr__

    def dataclass(cls: Any = None, /, *, frozen: bool = False, slots: bool = False, kw_only: bool = False) -> Any:
        """See `dataclasses.dataclass`; its other options are not taken."""

        def made(given: type) -> type:
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(given)  # noqa: TID251 - the one place
            listed, own = dataclasses.fields(made), vars(made)
            compared = _values([each.name for each in listed if each.compare])
            shown = [each.name for each in listed if each.repr]
            methods: dict[str, Any] = {"__repr__": _repr(shown), "__eq__": _eq(compared)}
            if "__init__" not in own:
                methods["__init__"] = _init(made, listed, frozen=frozen)
            if own.get("__hash__") is None:  # a class with an `__eq__` of its own has None here
                hashed = [each.name for each in listed if (each.compare if each.hash is None else each.hash)]
                made.__hash__ = _hash(_values(hashed)) if frozen else None
            if frozen:
                if "__setattr__" in own or "__delattr__" in own:
                    raise TypeError(f"a frozen class says how attributes are set: {made.__qualname__} cannot")
                methods |= _fixed(made, frozenset(each.name for each in listed))
                if slots:
                    methods |= {"__getstate__": _state, "__setstate__": _with_state}
            for name, method in methods.items():
                if name not in own:
                    setattr(made, name, method)
            return made

        return made if cls is None else made(cls)

    def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
        """A function that gives the values of some fields as a tuple."""
        if len(names) > 1:
            return attrgetter(*names)
        return lambda self: tuple(getattr(self, name) for name in names)

    def _init(cls: type, listed: Sequence[dataclasses.Field[Any]], *, frozen: bool) -> Any:
        """The one method that is compiled: for its signature, and since it is called often."""
        known: dict[str, Any] = {"_set": _set, "_FACTORY": _FACTORY, "__name__": cls.__module__}
        heads: dict[bool, list[str]] = {False: ["self"], True: ["*"]}
        lines = []
        for each in listed:
            name, value = each.name, each.name
            given = name
            if each.default_factory is not dataclasses.MISSING:
                known[f"_make_{name}"] = each.default_factory
                given, value = f"{name}=_FACTORY", f"_make_{name}()"
                value = f"{value} if {name} is _FACTORY else {name}" if each.init else value
            elif each.default is not dataclasses.MISSING:
                known[f"_default_{name}"] = each.default
                given, value = f"{name}=_default_{name}", name if each.init else f"_default_{name}"
            elif not each.init:
                continue
            if each.init:
                heads[bool(each.kw_only)].append(given)
            lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        head = [*heads[False], *(heads[True] if len(heads[True]) > 1 else [])]
        exec(f"def __init__({', '.join(head)}):\n " + "\n ".join(lines or ["pass"]), known)  # noqa: S102 - of the names of fields, which are names
        made = known["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        made.__annotations__ = {each.name: each.type for each in listed if each.init} | {"return": None}
        return made

    def _repr(names: Sequence[str]) -> Any:
        def __repr__(self: Any) -> str:  # noqa: N807 - what it is called in the class
            return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

        return recursive_repr()(__repr__)

    def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Any:
        def __eq__(self: Any, other: object) -> bool:  # noqa: N807 - what it is called in the class
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        return __eq__

    def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Any:
        def __hash__(self: Any) -> int:  # noqa: N807 - what it is called in the class
            return hash(values(self))

        return __hash__

    def _fixed(cls: type, names: frozenset[str]) -> dict[str, Any]:
        """No field is set or deleted; a class below that is not a dataclass may have attributes besides."""

        def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807 - what it is called in the class
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def __delattr__(self: Any, name: str) -> None:  # noqa: N807 - what it is called in the class
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        return {"__setattr__": __setattr__, "__delattr__": __delattr__}

    def _state(self: Any) -> list[Any]:
        """What is pickled of a frozen class with slots."""
        return [getattr(self, each.name) for each in dataclasses.fields(self)]

    def _with_state(self: Any, state: list[Any]) -> None:
        for each, value in zip(dataclasses.fields(self), state, strict=True):
            _set(self, each.name, value)
