"""Tables of a fixed schema as classes: one declaration makes schema and accessors, and a column that is not there is a fault."""

import pickle

import pyarrow as pa
import pytest

from merestone.columnar.table_shape import TableColumn, TableShape
from merestone.dataset.feed import Feed
from merestone.dataset.history import ChunkRows
from merestone.dataset.pages import FileEntries
from merestone.dataset.tables import ChangeLog, IndexRows, WithdrawnRows
from merestone.gate.findings import FindingLines
from merestone.line.finding_places import Places
from merestone.writer.files import Rejects

SHAPES = [ChangeLog, ChunkRows, Feed, FileEntries, FindingLines, IndexRows, Places, Rejects, WithdrawnRows]


class Parcels(TableShape):
    """Two columns, one with a name that Python keeps for itself."""

    pid = TableColumn(pa.string(), nullable=False)
    kind = TableColumn(pa.int32(), name="class")


ROWS = Parcels.of({Parcels.kind: pa.array([1, None, 3], pa.int32()), Parcels.pid: pa.array(["a", "b", "c"])})


def test_the_schema_follows_from_the_declaration():
    assert Parcels.schema == pa.schema([pa.field("pid", pa.string(), nullable=False), ("class", pa.int32())])
    assert (Parcels.kind.name, Parcels.kind.field.nullable, Parcels.pid.field.nullable) == ("class", True, False)
    assert Parcels.empty().table.schema == Parcels.schema


def test_columns_are_put_in_the_order_of_the_schema():
    assert ROWS.table.column_names == ["pid", "class"]
    assert (ROWS.pid.to_pylist(), ROWS.kind.to_pylist()) == (["a", "b", "c"], [1, None, 3])


def test_rows_are_chosen_joined_and_given_other_values():
    assert ROWS.filter(pa.array([True, False, True])).pid.to_pylist() == ["a", "c"]
    assert ROWS.take(pa.array([2, 0])).kind.to_pylist() == [3, 1]
    assert Parcels.concat([ROWS, ROWS.take(pa.array([1]))]).pid.to_pylist() == ["a", "b", "c", "b"]
    assert len(Parcels.concat([])) == 0
    other = ROWS.with_column(Parcels.pid, pa.array(["x", "y", "z"]))
    assert (other.pid.to_pylist(), other.table.schema) == (["x", "y", "z"], Parcels.schema)


def test_a_missing_column_is_a_fault_when_rows_are_made_and_when_they_are_read():
    with pytest.raises(KeyError, match="class"):
        Parcels.of({Parcels.pid: pa.array(["a"])})
    with pytest.raises(KeyError, match="class"):
        _ = Parcels(ROWS.table.select(["pid"])).kind


def test_a_shape_of_a_given_schema_declares_no_other_columns():
    with pytest.raises(TypeError, match="Wrong declares length"):
        type("Wrong", (TableShape,), {"length": TableColumn()}, schema=Parcels.schema)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda each: each.__name__)
def test_every_column_of_a_shape_is_read_by_its_attribute_and_leaves_the_process(shape):
    back = pickle.loads(pickle.dumps(shape.empty()))  # noqa: S301 - what this test has just written
    declared = [each for each in vars(shape).values() if isinstance(each, TableColumn)]
    assert [each.name for each in declared] == shape.schema.names == back.table.column_names
    assert all(each.__get__(back, shape).type == shape.schema.field(each.name).type for each in declared)
