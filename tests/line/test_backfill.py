"""A field that was just agreed and is filled now is no mass change: its features are changes, and no guard counts them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point

import merestone
from estate import geoparquet
from merestone.line.judging import guards_before_processing

FIELDS = [{"name": "pid", "type": "string", "nullable": False}, {"name": "v", "type": "integer"}]
NEW = {"name": "note", "type": "string"}
SIZE = 60


@pytest.fixture
def product(estate):
    made = estate(FIELDS, geometry_type="point", precision=2, epsg=25832)
    made.settings["guard"] = {"max_changed_fraction": 0.2, "max_column_changed_fraction": 0.2, "min_touched": 0}
    return made


def deliver(path, *, note=None, edit=(), size=SIZE):
    columns = {
        "pid": pa.array([f"p{n:05}" for n in range(size)]),
        "v": pa.array([-1 if n in edit else n for n in range(size)]),
        "geometry": [Point(500_000.37 + n, 5_600_000.41 + n) for n in range(size)],
    }
    if note is not None:
        columns["note"] = pa.array(note, pa.string())
    return geoparquet(path, columns, epsg=25832)


def agree_on_the_note(product):
    product.stamp("v1.1.0")
    product.terms["schema_fields"] = [*FIELDS, NEW]


def guards_of(night):
    return {each.rule for each in night.result.findings if each.surface == "guard"}


def test_a_field_agreed_and_filled_in_one_night_is_backfilled(product, tmp_path):
    product.publish(deliver(tmp_path / "1.parquet"))
    agree_on_the_note(product)
    night = product.publish(deliver(tmp_path / "2.parquet", note=["x"] * SIZE))
    assert (night.status, night.result.delta.changed) == ("published", SIZE), night.said
    (said,) = [each for each in night.result.findings if each.rule == "backfilled"]
    assert (said.severity, said.field, said.count) == ("warning", "note", SIZE)


def test_a_field_that_was_null_in_every_row_and_is_filled_later_is_backfilled(product, tmp_path):
    product.publish(deliver(tmp_path / "1.parquet"))
    agree_on_the_note(product)
    product.publish(deliver(tmp_path / "2.parquet", note=[None] * SIZE))
    night = product.publish(deliver(tmp_path / "3.parquet", note=["x"] * SIZE))
    assert (night.status, night.result.delta.changed) == ("published", SIZE), night.said
    # From now on the field holds values: the next mass change of it is one.
    again = product.publish(deliver(tmp_path / "4.parquet", note=["y"] * SIZE))
    assert (again.status, guards_of(again)) == ("refused", {"changed", "column_changed"}), again.said


def test_a_field_that_held_one_value_is_not_backfilled(product, tmp_path):
    product.publish(deliver(tmp_path / "1.parquet"))
    agree_on_the_note(product)
    product.publish(deliver(tmp_path / "2.parquet", note=["x", *[None] * (SIZE - 1)]))
    night = product.publish(deliver(tmp_path / "3.parquet", note=["x"] * SIZE))
    assert (night.status, guards_of(night)) == ("refused", {"changed", "column_changed"}), night.said


def test_other_edits_of_the_same_night_are_counted(product, tmp_path):
    """All features are backfilled, and 20 of 60 are edited besides."""
    product.publish(deliver(tmp_path / "1.parquet"))
    agree_on_the_note(product)
    night = product.publish(deliver(tmp_path / "2.parquet", note=["x"] * SIZE, edit=range(20)))
    assert (night.status, guards_of(night)) == ("refused", {"changed", "column_changed"}), night.said
    assert "33 % changed" in night.said
    few = product.publish(deliver(tmp_path / "3.parquet", note=["x"] * SIZE, edit=range(6)))
    assert (few.status, few.result.delta.changed) == ("published", SIZE), few.said


def test_a_sample_does_not_count_it_either(product, tmp_path, monkeypatch):
    monkeypatch.setattr(guards_before_processing, "FEW", 500)
    product.publish(deliver(tmp_path / "1.parquet", size=1_000))
    agree_on_the_note(product)
    night = product.publish(deliver(tmp_path / "2.parquet", note=["x"] * 1_000, size=1_000))
    assert (night.status, night.result.delta.changed) == ("published", 1_000), night.said


def labelled(product, **asked):
    """What `changes` says: its counts of `backfilled` and of what no change log holds, and the labelled keys, three ways."""
    out = product.folder / "feed.parquet"
    told = merestone.changes(product.dataset, keys=True, out=out, **asked)
    written = pq.read_table(out)
    in_file = written.filter(written.column("backfilled")).column("feature_id").to_pylist()
    in_feed = told.feed.table.filter(told.feed.table.column("backfilled")).num_rows
    assert (told.delta.suppressed, told.delta.refreshed) == (None, None)
    assert told.delta.backfilled == len(in_file) == in_feed
    assert told.keys["backfilled"] == tuple(in_file)
    return in_file


def test_changes_label_what_was_backfilled_as_the_night_counted_it(product, tmp_path):
    """Filled rows, of them three edited besides and one that had no value: three ways to say it, one answer."""
    product.publish(deliver(tmp_path / "1.parquet"))
    agree_on_the_note(product)
    night = product.publish(deliver(tmp_path / "2.parquet", note=[None, *["x"] * (SIZE - 1)], edit=(0, 1, 2)))
    here = [f"p{n:05}" for n in range(3, SIZE)]
    assert (night.status, night.result.delta.backfilled) == ("published", len(here)), night.said
    assert labelled(product) == here
    assert labelled(product, where="v >= 10") == here[7:]
    # Folded: what counts is that the field held no value where the feed starts.
    product.publish(deliver(tmp_path / "3.parquet", note=[None, *["y"] * 4, *["x"] * (SIZE - 5)], edit=(0, 1, 2)))
    assert labelled(product) == []
    assert labelled(product, from_version=1) == here


def test_one_row_filled_is_counted_like_a_mass(product, tmp_path):
    product.publish(deliver(tmp_path / "1.parquet"))
    agree_on_the_note(product)
    product.publish(deliver(tmp_path / "2.parquet", note=[None] * SIZE))
    night = product.publish(deliver(tmp_path / "3.parquet", note=["x", *[None] * (SIZE - 1)], edit=(1,)))
    assert (night.result.delta.changed, night.result.delta.backfilled) == (2, 1), night.said
    assert labelled(product) == ["p00000"]
    # The field holds a value now, in another row than the next one.
    night = product.publish(deliver(tmp_path / "4.parquet", note=["x", "x", *[None] * (SIZE - 2)], edit=(1,)))
    assert (night.result.delta.changed, night.result.delta.backfilled) == (1, 0), night.said
    assert labelled(product) == []
