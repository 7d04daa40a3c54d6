"""Kinds and exit codes are an interface: this list only ever grows."""

import pickle
from pathlib import Path

import pytest

from merestone import errors
from merestone.errors import MerestoneError

KNOWN = {
    "UsageError": ("usage", 2, False),
    "SourceError": ("source", 3, False),
    "StoreError": ("store", 4, True),
    "ConflictError": ("conflict", 5, True),
    "StampError": ("stamp", 5, False),
    "CorruptError": ("corrupt", 6, False),
    "UnknownOutcomeError": ("unknown", 7, True),
    "MissingError": ("missing", 8, False),
    "InternalError": ("internal", 70, False),
    "OutputError": ("output", 74, False),
}


def kinds():
    return [each for each in MerestoneError.__subclasses__() if each.__module__ == errors.__name__]


def test_every_known_kind_keeps_its_name_code_and_whether_a_retry_helps():
    assert {each.__name__: (each.kind, each.exit_code, each.retry) for each in kinds()} == KNOWN


def test_no_two_kinds_share_a_code_but_conflicts_and_none_is_that_of_done_or_refused():
    codes = [each.exit_code for each in kinds() if each.kind != "stamp"]
    assert len(set(codes)) == len(codes)
    assert errors.StampError.exit_code == errors.ConflictError.exit_code  # told apart by their kind
    assert not {errors.EXIT_DONE, errors.EXIT_REFUSED, 130} & set(codes)
    assert (errors.EXIT_DONE, errors.EXIT_REFUSED) == (0, 1)


@pytest.mark.parametrize("kind", kinds())
def test_an_error_survives_the_way_back_from_a_worker(kind):
    back = pickle.loads(pickle.dumps(kind("what", field="where", hint="next")))  # noqa: S301 - our own bytes
    assert type(back) is kind
    assert back.to_json() == {"kind": kind.kind, "retry": kind.retry, "message": "what", "field": "where", "hint": "next"}
    assert str(back) == "what"


def test_the_drawing_of_the_tree_names_every_kind_with_its_code():
    drawing = Path(errors.__file__).read_text(encoding="utf-8").partition('"""')[2].partition('"""')[0]
    lines = [line.split()[1:4] for line in drawing.splitlines() if "── " in line]
    assert lines == [[name, kind, str(code)] for name, (kind, code, _) in KNOWN.items()]


@pytest.mark.parametrize(
    "said", ["[Errno 13] Permission denied", "cannot be read: [Errno 13] Permission denied", "x [errno 2] No such file"]
)
def test_numbers_of_the_operating_system_are_left_out(said):
    assert "rrno" not in errors.SourceError(said).message
