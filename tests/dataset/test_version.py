"""Reading a version: exactly its rows, by box and columns, or an error that names the damaged file."""

import re
from dataclasses import replace

import geopandas as gpd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shapely import LineString, Polygon, box

from dataset.build import CONTRACT, Miniature, row, seen, state_of
from merestone.contract.contract import Field, FieldType
from merestone.dataset.columns import stored_type
from merestone.dataset.manifest import sha256
from merestone.dataset.version import Dataset, Version
from merestone.errors import CorruptError, StoreError, UsageError
from merestone.inspect.browse import Address, parse_address
from merestone.storage.local import LocalStore
from stores import fresh

GRID = {
    f"p{x}{y}": row(name=f"{x},{y}", rank=x * 10 + y, at=(x * 10.0, y * 10.0), partition=f"district=D{x // 5}")
    for x in range(10)
    for y in range(10)
}


@pytest.fixture
def mini(tmp_path):
    return Miniature(LocalStore(tmp_path / "ds"), row_group_rows=5)


def test_a_dataset_and_a_version_say_what_they_are(mini):
    dataset = Dataset(mini.store)
    assert repr(dataset) == f"<Dataset {mini.store.root}>"
    mini.publish(GRID)
    assert repr(dataset.version()).startswith(f"<Version 1 of {dataset.manifest().name}: 100 features, ")


def test_no_version_is_0(mini):
    mini.publish(GRID)
    assert parse_address("parcels.yaml@0") == Address("parcels.yaml", 0)
    with pytest.raises(UsageError, match="has no version 0"):
        Dataset(mini.store).version(0)


def test_each_version_reads_as_it_was_published(mini):
    states = [GRID, {**GRID, "p00": row("new", 7, (1, 1))}, {pid: each for pid, each in GRID.items() if pid != "p55"}]
    for state in states:
        mini.publish(state)
    dataset = Dataset(mini.store)
    assert dataset.versions() == [1, 2, 3]
    for version, state in enumerate(states, 1):
        assert state_of(dataset.to_arrow(version=version)) == seen(state)
    assert state_of(dataset.to_arrow()) == seen(states[-1])
    assert dataset.version().number == 3


def test_a_version_stays_what_it_was_while_others_are_published(mini):
    mini.publish(GRID)
    reader = Dataset(mini.store).version()
    batches = reader.batches()
    first = next(batches)
    mini.publish({"other": row()})
    assert state_of(pa.Table.from_batches([first, *batches])) == seen(GRID)


def test_what_is_not_there_is_a_usage_error(mini):
    with pytest.raises(UsageError, match="holds no published dataset"):
        Dataset(mini.store).versions()
    mini.publish(GRID)
    dataset = Dataset(mini.store)
    for version in (0, 2, -1):
        with pytest.raises(UsageError, match=f"no version {version}") as caught:
            dataset.version(version)
        assert "the newest is 1" in caught.value.hint
    with pytest.raises(UsageError, match="no column 'nmae'") as caught:
        dataset.to_arrow(columns=["nmae"])
    assert "name" in caught.value.hint


@pytest.mark.parametrize("bbox", [(0, 0, 1), (2, 0, 1, 1), (0, 0, float("nan"), 1), (0, 0, float("inf"), 1)])
def test_a_box_that_is_none_is_a_usage_error(mini, bbox):
    mini.publish(GRID)
    with pytest.raises(UsageError, match="is not a box"):
        Dataset(mini.store).to_arrow(bbox=bbox)


def test_columns_come_as_asked_and_the_covering_never(mini):
    mini.publish(GRID)
    dataset = Dataset(mini.store)
    assert dataset.to_arrow().schema.names == ["pid", "name", "rank", "geometry"]
    some = dataset.to_arrow(columns=["rank", "pid"], bbox=(0, 0, 10, 10))
    assert some.schema.names == ["rank", "pid"]
    assert sorted(some.column("pid").to_pylist()) == ["p00", "p01", "p10", "p11"]
    assert b"geo" not in (some.schema.metadata or {})


BOXES = st.tuples(*[st.integers(-5, 105)] * 4).map(lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3])))


@pytest.fixture(scope="module")
def mixed():
    """Points, lines, squares and features without a place, in small row groups."""
    state = dict(GRID)
    for n in range(40):
        x, y = n * 2.5, (n * 37) % 100
        shape = [LineString([(x, y), (x + 13, y + 3)]), box(x, y, x + 7, y + 7), Polygon([(x, y), (x + 9, y), (x, y + 9)]), None][n % 4]
        state[f"s{n}"] = (f"s{n}", n, shape, f"district=D{n % 3}")
    mini = Miniature(fresh(), row_group_rows=4, target_rows=20)
    mini.publish(state)
    return mini


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bbox=BOXES)
def test_a_box_gets_exactly_the_features_whose_boxes_meet_it(mixed, bbox):
    got = state_of(Dataset(mixed.store).to_arrow(bbox=bbox))
    expected = {}
    for pid, each in mixed.states[1].items():
        if each[2] is not None:
            xmin, ymin, xmax, ymax = each[2].bounds
            if xmin <= bbox[2] and xmax >= bbox[0] and ymin <= bbox[3] and ymax >= bbox[1]:
                expected[pid] = each
    assert got == seen(expected)


def test_features_without_a_place_come_without_a_box_only(mixed):
    dataset = Dataset(mixed.store)
    nowhere = {pid for pid, each in mixed.states[1].items() if each[2] is None}
    assert nowhere
    assert nowhere <= set(dataset.to_arrow().column("pid").to_pylist())
    assert not nowhere & set(dataset.to_arrow(bbox=(-1e9, -1e9, 1e9, 1e9)).column("pid").to_pylist())


def test_files_and_row_groups_outside_the_box_are_not_read(mini, monkeypatch):
    mini.publish(GRID)
    read = []
    real = pq.ParquetFile.read_row_group
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda self, n, **kw: (read.append(n), real(self, n, **kw))[1])
    version = Dataset(mini.store).version()
    assert len(version.files) == 2
    got = version.to_arrow(bbox=(0, 0, 5, 5))
    assert got.num_rows == 1
    assert 1 <= len(read) <= 3, "of 20 row groups in 2 files"


def test_an_added_field_comes_as_typed_nulls_from_older_files(mini):
    mini.publish(GRID)
    mini.publish({**GRID, "p00": row("new", 7, (1, 1))}, added_fields=(Field("note", FieldType("string")), Field("day", FieldType("date"))))
    old_only = GRID["p99"][3]
    table = Dataset(mini.store).to_arrow()
    assert table.schema.field("day").type == pa.date32()
    assert table.schema.names == ["pid", "name", "rank", "note", "day", "geometry"]
    assert state_of(table) == seen(mini.states[2])
    assert old_only != GRID["p00"][3], "the other partition's file is older than the field"
    only = Dataset(mini.store).to_arrow(columns=["note"])
    assert only.num_rows == len(GRID)
    assert only.column("note").null_count == len(GRID)
    assert Dataset(mini.store).to_arrow(version=1).schema.names == ["pid", "name", "rank", "geometry"]


def test_an_added_field_is_known_before_any_file_has_it(mini):
    mini.publish(GRID)
    mini.publish(GRID, added_fields=(Field("cost", FieldType("decimal", 10, 2)),))
    table = Dataset(mini.store).to_arrow()
    assert table.schema.field("cost").type == pa.decimal128(10, 2)
    assert table.column("cost").null_count == len(GRID)


def test_a_dataset_without_features_still_has_columns(mini):
    mini.publish({})
    dataset = Dataset(mini.store)
    table = dataset.to_arrow()
    assert table.num_rows == 0
    assert table.schema.names == ["pid", "name", "rank", "geometry"]
    frame = dataset.to_geodataframe()
    assert list(frame.columns) == ["pid", "name", "rank", "geometry"]
    assert frame.crs.to_epsg() == 28992


def test_a_geodataframe_keeps_types_and_crs(mini):
    mini.publish({"p1": row("a", 2**53 + 1, (1, 2)), "p2": row(None, None, None)})
    frame = Dataset(mini.store).to_geodataframe().set_index("pid")
    assert isinstance(frame, gpd.GeoDataFrame)
    assert frame.crs.to_epsg() == 28992
    assert int(frame.loc["p1", "rank"]) == 2**53 + 1
    assert frame["rank"].isna().to_dict() == {"p1": False, "p2": True}
    assert frame.loc["p1", "geometry"].wkt == "POINT (1 2)"
    assert frame.loc["p2", "geometry"] is None
    some = Dataset(mini.store).to_geodataframe(bbox=(0, 0, 5, 5), columns=["pid"])
    assert list(some.columns) == ["pid", "geometry"]
    assert len(some) == 1


def test_the_arrow_table_written_out_is_geoparquet(mini, tmp_path):
    mini.publish(GRID)
    pq.write_table(Dataset(mini.store).to_arrow(), tmp_path / "out.parquet")
    frame = gpd.read_parquet(tmp_path / "out.parquet")
    assert frame.crs.to_epsg() == 28992
    assert len(frame) == len(GRID)


def damaged(mini, change):
    """Damage one data file, and say which."""
    name = Dataset(mini.store).files()[0].path
    path = mini.store.root / name
    change(path)
    return name


def swap_rows(path):
    """Other content of the same length: one byte in the middle of a page."""
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"x" * path.stat().st_size),
        swap_rows,
    ],
)
def test_a_damaged_file_is_named_and_never_means_missing_rows(mini, change):
    mini.publish(GRID)
    name = damaged(mini, change)
    for call in (lambda: Dataset(mini.store).to_arrow(), lambda: Dataset(mini.store).to_arrow(bbox=(-1, -1, 200, 200))):
        with pytest.raises(CorruptError) as caught:
            call()
        assert name in caught.value.message
        assert caught.value.field == name
        assert caught.value.hint


def test_half_a_file_that_the_store_calls_whole_is_never_published():
    """The store keeps the first half of one data file and answers success: the old version stays, and the file is named."""
    mini = Miniature(fresh())
    mini.publish(GRID)
    create = mini.store.create

    def halving(name, data):
        create(name, data[: len(data) // 2] if name.startswith("data/district=D0") else data)

    mini.store.create = halving
    with pytest.raises(StoreError, match="data/district=D0") as caught:
        mini.publish({**GRID, "p00": row("new", 7, (1, 1))})
    assert caught.value.exit_code == 4
    mini.store.create = create
    assert Dataset(mini.store).versions() == [1]
    assert state_of(Dataset(mini.store).to_arrow()) == seen(GRID)


def test_a_file_of_other_rows_is_named(mini):
    """As long as the manifest says, and valid Parquet, but with other rows: the number gives it away."""
    mini.publish(GRID)
    dataset = Dataset(mini.store)
    file = dataset.files()[0]
    path = mini.store.root / file.path
    pq.write_table(pq.read_table(path).slice(0, 10), path)
    data = path.read_bytes()
    assert sha256(data) != file.sha256
    with pytest.raises(CorruptError, match=r"bytes where the manifest|rows where the manifest"):
        dataset.to_arrow()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("integer", pa.int64()),
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("list<string>", pa.list_(pa.string())),
        ("struct<k: integer, n: list<string>>", pa.struct([("k", pa.int64()), ("n", pa.list_(pa.string()))])),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_local", pa.timestamp("us")),
        ("geometry", pa.binary()),
    ],
)
def test_contract_types_are_stored_as_arrow_types(text, kind):
    assert stored_type(text) == kind


def test_a_contract_that_cannot_be_read_is_corrupt(mini):
    broken = {"columns": ["pid"], "types": ["text"], "derive": None}
    manifest = mini.publish({"p1": row()})
    from dataclasses import replace  # noqa: PLC0415 - only here

    from merestone.dataset.columns import columns_of  # noqa: PLC0415 - only here

    with pytest.raises(CorruptError, match="cannot be read"):
        columns_of(replace(manifest, contract={**manifest.contract, "schema_fields": [{"name": "x", "type": "strnig"}]}), [])
    with pytest.raises(CorruptError, match="cannot be read"):
        columns_of(replace(manifest, key=broken, contract={**manifest.contract, "schema_fields": []}), [])
    assert CONTRACT.crs_epsg == 28992


def test_a_notebook_shows_a_dataset_and_a_version_without_reading_a_data_file(mini):
    """Every text is escaped, and no address of the network stands in it."""
    mini.publish(GRID)
    dataset = Dataset(mini.store)
    reader = dataset.version()
    evil = replace(reader.manifest, name="<script>x</script>", contract_version="<b>", key={"columns": ["<img src=x>"]})
    for file in dataset.files():
        mini.store.delete(file.path)
    shown = [dataset._repr_html_(), reader._repr_html_(), Version(mini.store, evil)._repr_html_()]
    for each in shown:
        assert each.startswith("<table>")
        assert "rank (integer)" in each
        assert ">100<" in each  # features
        assert not re.search(r"<(script|img|b|link)\b|https?:", each)
    assert "&lt;script&gt;x&lt;/script&gt;" in shown[2]
    assert "&lt;img src=x&gt;" in shown[2]
    assert str(mini.store.url) in shown[0]


def test_a_notebook_shows_why_a_dataset_cannot_be_read(tmp_path):
    shown = Dataset(LocalStore(tmp_path / "<i>"))._repr_html_()
    assert "holds no published dataset" in shown
    assert "<i>" not in shown
