"""Files that a night does not touch stay as they are, and files that it replaced are never named again."""

from __future__ import annotations

import importlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point

from estate import geoparquet
from merestone.errors import InternalError

FIELDS = [{"name": "pid", "type": "string", "nullable": False}, {"name": "v", "type": "integer"}, {"name": "district", "type": "string"}]
SIZE = 60


@pytest.fixture(params=["column", "kdtree"])
def product(request, estate):
    made = estate(FIELDS, geometry_type="point", precision=3, epsg=25832)
    made.settings["files"] = {"target_rows": 4, "row_group_rows": 3}
    return made.by_column("district") if request.param == "column" else made.by_place(8)


def deliver(path, edit=(), gone=(), moved=()):
    keys = [n for n in range(SIZE) if n not in gone]
    return geoparquet(
        path,
        {
            "pid": pa.array([f"p{n:03}" for n in keys]),
            "v": pa.array([-1 if n in edit else n for n in keys]),
            "district": pa.array([f"d{(n + 1 if n in moved else n) // 10}" for n in keys]),
            "geometry": [Point(500000 + (n + (10 if n in moved else 0)) * 10, 5600000 + n % 3) for n in keys],
        },
        epsg=25832,
    )


def touched_partitions(night):
    """From the change log: partitions that gained, lost or rewrote a row."""
    kinds = ("added", "changed", "removed", "moved", "reprocessed")
    return {line[side] for line in night.log.values() if line["class"] in kinds for side in ("partition", "old_partition")} - {None}


def test_only_touched_partitions_are_rewritten(product, tmp_path):
    product.publish(deliver(tmp_path / "0.parquet"))
    nights = [{"edit": [3]}, {"edit": [3], "gone": [59]}, {"moved": [25]}, {"gone": list(range(10))}, {}]
    for number, night in enumerate(nights, 1):
        before = {file.path: file.partition for file in product.files()}
        was = product.everything()
        told = product.publish(deliver(tmp_path / f"{number}.parquet", **night))
        assert told.status == "published", told.said
        files = {file.path: file.partition for file in product.files()}
        touched = touched_partitions(told)
        assert {part for path, part in files.items() if path not in before} | {
            part for path, part in before.items() if path not in files
        } == touched
        assert not [path for path in files if path in before and files[path] in touched]
        assert (told.result.files_written, told.result.files_carried) == (
            len(files.keys() - before.keys()),
            len(files.keys() & before.keys()),
        )
        assert told.result.bytes_written == sum((product.url / path).stat().st_size for path in files.keys() - before.keys())
        now = product.everything()
        assert all(now[path] == check for path, check in was.items() if path != "_current.json")
        assert set(product.rows()) == {f"p{n:03}" for n in range(SIZE) if n not in night.get("gone", ())}


def test_superseded_files_are_never_named(product, tmp_path):
    product.publish(deliver(tmp_path / "0.parquet"))
    product.publish(deliver(tmp_path / "1.parquet", edit=[3, 40]))
    product.publish(deliver(tmp_path / "2.parquet", edit=[40]))
    live = {file.path for file in product.dataset.files()}
    there = {str(path.relative_to(product.url)) for path in product.url.glob("data/**/*.parquet")}
    assert live < there
    newest: dict[str, int] = {}
    for file in product.dataset.files():
        newest[file.partition] = max(newest.get(file.partition, 0), file.version)
    assert all(file.version == newest[file.partition] for file in product.dataset.files())
    assert sum(file.rows for file in product.dataset.files()) == SIZE == product.table().num_rows
    assert len(set(product.table().column("pid").to_pylist())) == SIZE
    # What stood in each version still reads, from its own files.
    assert {version: product.rows(version)["p003"]["v"] for version in (1, 2, 3)} == {1: 3, 2: -1, 3: 3}


def test_files_are_as_large_as_agreed_and_say_what_they_hold(product, tmp_path):
    product.publish(deliver(tmp_path / "0.parquet"))
    for file in product.files():
        parquet = pq.ParquetFile(product.url / file.path)
        assert parquet.metadata.num_rows == file.rows <= 4
        assert all(parquet.metadata.row_group(n).num_rows <= 3 for n in range(parquet.metadata.num_row_groups))
        assert (product.url / file.path).stat().st_size == file.bytes
        geo = json.loads(parquet.schema_arrow.metadata[b"geo"])
        assert tuple(geo["columns"]["geometry"]["bbox"]) == file.bbox
        table = parquet.read()
        cover = table.column("bbox").to_pylist()
        assert file.bbox == (
            min(each["xmin"] for each in cover),
            min(each["ymin"] for each in cover),
            max(each["xmax"] for each in cover),
            max(each["ymax"] for each in cover),
        )


def test_a_night_that_only_removes_and_one_that_empties_all(product, tmp_path):
    product.publish(deliver(tmp_path / "0.parquet"))
    night = product.publish(deliver(tmp_path / "1.parquet", gone=range(5)))
    assert (night.result.delta.removed, night.result.delta.touched) == (5, 5)
    empty = deliver(tmp_path / "2.parquet", gone=range(SIZE))
    night = product.publish(empty)
    assert (night.status, night.result.refused_by) == ("refused", "guard"), night.said
    assert "an empty delivery" in night.said
    night = product.publish(empty, confirm=night.result.confirm)
    assert (night.status, night.result.features, night.result.delta.removed) == ("published", 0, SIZE - 5), night.said
    assert product.dataset.files() == ()
    assert product.rows() == {}
    assert product.publish(empty).status == "unchanged"
    night = product.publish(deliver(tmp_path / "3.parquet"))
    assert (night.status, night.result.delta.added) == ("published", SIZE), night.said
    assert len(product.rows()) == SIZE


def test_a_first_delivery_without_a_row(product, tmp_path):
    empty = deliver(tmp_path / "0.parquet", gone=range(SIZE))
    night = product.publish(empty)
    assert (night.status, night.result.refused_by, product.version) == ("refused", "guard", None), night.said
    night = product.publish(empty, confirm=night.result.confirm)
    assert (night.status, night.result.features) == ("published", 0), night.said
    assert product.table().num_rows == 0
    assert product.publish(empty).status == "unchanged"
    assert product.publish(deliver(tmp_path / "1.parquet")).result.features == SIZE


def test_noise_at_a_split_leaves_the_feature_in_its_leaf(estate, tmp_path):
    """The published value stays within noise, so its place stays too: spatial schemes place by the stored geometry."""
    product = estate(FIELDS[:1], geometry_type="point", precision=3, epsg=25832).by_place(2)

    def night(number, east):
        at = [Point(500000 + n + (east if n == 2 else 0), 5600000) for n in range(4)]
        return geoparquet(tmp_path / f"{number}.parquet", {"pid": pa.array(list("abcd")), "geometry": at}, epsg=25832)

    product.publish(night(0, 0.0))
    tree, homes = product.tree(), product.partitions()
    assert tree["at"] == 500002
    told = product.publish(night(1, -0.0005008))
    assert told.result.delta.suppressed == 1, told.said
    assert told.result.delta.moved == 0
    assert product.partitions() == homes == product.in_tree(tree)


def test_noise_and_another_district_is_a_move_of_the_published_value(estate, tmp_path):
    product = estate(FIELDS[:1], geometry_type="point", precision=3, epsg=25832).by_column("district").agreed()

    def night(number, east, district):
        at = [Point(500000 + east, 5600000), Point(1, 1)]
        columns = {"pid": pa.array(["a", "b"]), "district": pa.array([district, "s"]), "geometry": at}
        return geoparquet(tmp_path / f"{number}.parquet", columns, epsg=25832)

    product.publish(night(0, 0.0, "n"))
    told = product.publish(night(1, 0.0005004, "s"))
    assert told.keys("moved") == ["a"], told.said
    assert product.shapes()["a"].x == 500000
    told = product.publish(night(2, 0.0005004, "n"))
    assert told.keys("moved") == ["a"], told.said
    assert product.shapes()["a"].x == 500000
    assert product.publish(night(2, 0.0005004, "n")).status == "unchanged"


def twice(rows, keys):
    """The first row once more at the end."""
    return pa.concat_tables([rows, rows.slice(0, 1)]), pa.concat_arrays([keys, keys.slice(0, 1)])


# What a fault of the code could do to a partition; each leaves the old version.
FAULTS = {
    "a carried row is lost": (
        "merestone.line.writing.rewrite_partition.carried_rows",
        lambda found: tuple(each.slice(1) for each in found),
    ),
    "a carried row stands twice": ("merestone.line.writing.rewrite_partition.carried_rows", lambda found: twice(*found)),
    "nothing is carried": (
        "merestone.line.writing.rewrite_partition.carried_rows",
        lambda found: tuple(each.slice(0, 0) for each in found),
    ),
    "a file is forgotten": ("merestone.line.writing.write.rewrite", lambda files: files[1:]),
    "a file is named twice": ("merestone.line.writing.write.rewrite", lambda files: [*files, files[0]]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_does_not_add_up_is_never_committed(product, tmp_path, monkeypatch, fault):
    """Previous + added - removed = now, in each partition and in total, counted from what was written."""
    product.publish(deliver(tmp_path / "0.parquet"))
    before, rows = product.everything(), product.rows()
    target, spoil = FAULTS[fault]
    module, _, name = target.rpartition(".")
    real = getattr(importlib.import_module(module), name)
    monkeypatch.setattr(target, lambda *given, **options: spoil(real(*given, **options)))
    with pytest.raises(InternalError, match="nothing was published"):
        product.publish(deliver(tmp_path / "1.parquet", edit=[3], gone=[59]))
    after = product.everything()
    assert (product.version, product.rows(), after["_current.json"]) == (1, rows, before["_current.json"])
    assert product.records()[-1]["status"] == "failed"
    monkeypatch.undo()
    assert product.publish(deliver(tmp_path / "1.parquet", edit=[3], gone=[59])).status == "published"
