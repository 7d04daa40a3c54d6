"""`merestone.dataclass` against the standard library's: one class made by both, and everything that can be asked of it."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import typing
from dataclasses import field

import pytest

from merestone.dataclass import dataclass as ours


class Base:
    """No dataclass."""

    __slots__ = ()


def shapes(dataclass):
    """Classes of every kind that the package has."""

    @dataclass(frozen=True, slots=True)
    class Fixed(Base):
        """Frozen, with every kind of field."""

        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list)
        d: int = field(default=4, init=False)
        e: float = field(default=5.0, compare=False, repr=False)
        f: dict[str, int] = field(default_factory=dict, init=False, hash=False)
        g: tuple[int, ...] = field(default=(), kw_only=True)

        def twice(self):
            return Fixed(self.a * 2)

    @dataclass(slots=True)
    class Open:
        """It changes, and ends its own making."""

        a: int
        b: int = 0

        def __post_init__(self):
            self.b += self.a

    @dataclass(frozen=True, slots=True)
    class Below(Fixed):
        """Inherits, and adds."""

        h: int = 8

    @dataclass(frozen=True)
    class Loose:
        """Without slots."""

        a: int
        b: int = 2

    @dataclass(frozen=True, slots=True)
    class Nothing:
        """Without fields."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named:
        """By name only."""

        a: int
        b: int = 2

    @dataclass(slots=True)
    class Own:
        """With methods of its own."""

        a: int

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

    return {each.__name__: each for each in (Fixed, Open, Below, Loose, Nothing, Named, Own)}


CALLS = [
    ("Fixed", (1,), {}),
    ("Fixed", (1, "x", [3]), {"e": 6.0, "g": (1, 2)}),
    ("Fixed", (), {}),
    ("Fixed", (1,), {"d": 2}),
    ("Fixed", (1, "b", [], 5.0, (1,)), {}),
    ("Open", (1,), {}),
    ("Open", (1, 2), {}),
    ("Below", (1,), {"h": 9}),
    ("Loose", (1,), {}),
    ("Nothing", (), {}),
    ("Nothing", (1,), {}),
    ("Named", (1,), {}),
    ("Named", (), {"a": 1}),
    ("Own", (1,), {}),
]
THEIRS, OURS = shapes(dataclasses.dataclass), shapes(ours)


def answer(ask):
    """What a question gives; of an error its type and text. The library of 3.11 loses its way where a frozen class with slots says no."""
    try:
        return ask()
    except Exception as fault:  # noqa: BLE001 - compared
        return ("refused",) if "super(type, obj)" in str(fault) else (type(fault), str(fault))


QUESTIONS = {
    "repr": repr,
    "equal": lambda one: (one == copy.copy(one), one == 1, one != dataclasses.replace(one)),
    "hash": lambda one: hash(one) == hash(copy.copy(one)),
    "is hashable": lambda one: type(one).__hash__ is not None and hash(one),
    "as a dict": dataclasses.asdict,
    "as a tuple": dataclasses.astuple,
    "other a": lambda one: repr(dataclasses.replace(one, a=9)) + str(dataclasses.replace(one, a=9) == one),
    "other e": lambda one: dataclasses.replace(one, e=9.0) == one,
    "set": lambda one: setattr(one, "a", 2) or repr(one),
    "set another": lambda one: setattr(one, "z", 2),
    "delete": lambda one: delattr(one, "a"),
    "deep copy": lambda one: repr(copy.deepcopy(one)),
    "match": lambda one: type(one).__match_args__,
    "fields": lambda one: [(each.name, str(each.type), each.init, each.kw_only) for each in dataclasses.fields(one)],
    "slots": lambda one: (getattr(type(one), "__slots__", None), hasattr(one, "__dict__")),
    "parameters": lambda one: str(inspect.signature(type(one))).replace("<object object>", ""),
    "own method": lambda one: repr(one.twice()),
}


@pytest.mark.parametrize(("name", "given", "named"), CALLS, ids=str)
def test_a_class_of_ours_answers_as_the_library_s_does(name, given, named):
    made = [answer(lambda kinds=kinds: kinds[name](*given, **named)) for kinds in (THEIRS, OURS)]
    if isinstance(made[0], tuple):
        assert made[1] == made[0]
        return
    for what, ask in QUESTIONS.items():
        theirs, mine = ([what, answer(lambda one=one, ask=ask: ask(one))] for one in (copy.copy(each) for each in made))
        refused = theirs[1] == ("refused",) and mine[1][0] is dataclasses.FrozenInstanceError
        assert mine == theirs or refused


def test_a_default_that_is_made_is_made_anew():
    one, other = OURS["Fixed"](1), OURS["Fixed"](1)
    assert (one.c, one.f) == ([], {})
    assert one.c is not other.c


def test_a_value_that_holds_itself_is_shown():
    one = OURS["Fixed"](1)
    one.c.append(one)
    assert repr(one).count("...") == 1


def test_a_frozen_class_has_no_way_of_its_own_to_set_attributes():
    with pytest.raises(TypeError, match="a frozen class says how attributes are set"):

        @ours(frozen=True)
        class _Wrong:
            a: int

            def __setattr__(self, name, value):
                pass


def test_a_class_below_that_is_no_dataclass_may_have_attributes_besides():
    class Besides(OURS["Loose"]):
        pass

    one = Besides(1)
    one.more = 2
    assert one.more == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.a = 3


@ours(frozen=True, slots=True)
class Kept:
    """Of a module, so it can be pickled."""

    a: int
    b: tuple[int, ...] = (1,)


def test_a_frozen_value_goes_to_other_processes_and_comes_back():
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(Kept(1, (2,)), protocol)) == Kept(1, (2,))  # noqa: S301 - our own
    assert typing.get_type_hints(Kept) == {"a": int, "b": tuple[int, ...]}


def test_no_class_of_the_package_is_made_by_the_library():
    """The library's way is half a millisecond a class, at each start of each command."""
    probe = """
import dataclasses, sys
theirs = dataclasses.dataclass
def counted(*given, **options):
    if not (options.get("init"), options.get("repr"), options.get("eq")) == (False, False, False):
        name = sys._getframe(1).f_globals["__name__"]
        if name.startswith("merestone"):
            print(name)
    return theirs(*given, **options)
dataclasses.dataclass = counted
import merestone.cli.publish, merestone.cli.check, merestone.cli.compare, merestone.cli.lineage
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
