"""A delivery is opened once and read once, whatever has to be known of it: what is looked at again rests in the scratch folder."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from shapely import Point

from estate import geoparquet
from merestone.compare import step
from merestone.compare.apply import apply
from merestone.compare.diff import compared
from merestone.compare.terms import ComparisonSettings
from merestone.drafts.init import init
from merestone.inspect import extract
from merestone.line.check import check
from merestone.line.settings import CheckSettings
from merestone.publication.reader import read_publication
from merestone.source import open as opening

FIELDS = [
    {"name": "pid", "type": "string", "nullable": False},
    {"name": "code", "type": "string", "unique": True},
    {"name": "day", "type": "date"},
]
EXTENT = [500_000, 5_600_000, 510_000, 5_700_000]


class Counted:
    """A source that counts its readings, and how many of its rows were taken."""

    def __init__(self, source, spec, readings, rows):
        self.source, self.spec, self.readings, self.rows = source, spec, readings, rows

    @property
    def delivery(self):
        return self.source.delivery

    def batches(self, *args):
        self.readings[self.spec.path] += 1
        for batch in self.source.batches(*args):
            self.rows[self.spec.path] += batch.num_rows
            yield batch

    def late_findings(self):
        return self.source.late_findings()


@pytest.fixture
def counts(monkeypatch):
    """(opened, readings, rows) of each delivery, by path."""
    opened, readings, rows = Counter(), Counter(), Counter()

    def counting(real):
        def open_counted(spec):
            opened[spec.path] += 1
            return Counted(real(spec), spec, readings, rows)

        return open_counted

    for name in (
        "line.preparing.prepare.open_source",
        "compare.sides.open_unjudged",
        "compare.apply.open_unjudged",
        "drafts.init.open_source",
    ):
        monkeypatch.setattr(f"merestone.{name}", counting(getattr(opening, name.rpartition(".")[2])))
    return opened, readings, rows


def deliver(path, n=60, **columns):
    made = {
        "pid": pa.array([f"p{k:03}" for k in range(n)]),
        "code": pa.array([f"c{k}" for k in range(n)]),
        "day": pa.array(["2026-01-01"] * n),
        "geometry": [Point(500_100 + k * 10, 5_600_100 + k) for k in range(n)],
    }
    return geoparquet(path, made | columns, epsg=25832)


def swapped(n=60):
    """Points, the last with x and y exchanged."""
    return [Point(500_100 + k * 10, 5_600_100 + k) if k < n - 1 else Point(5_600_100 + k, 500_100 + k * 10) for k in range(n)]


DELIVERIES = {
    "good": {},
    "a key twice": {"pid": pa.array([f"p{k % 59:03}" for k in range(60)])},
    "a value twice": {"code": pa.array([f"c{k % 59}" for k in range(60)])},
    "a row with its axes swapped": {"geometry": swapped()},
    "a column of another type": {"day": pa.array([True] * 60)},
    "a null key": {"pid": pa.array([None, *(f"p{k:03}" for k in range(59))])},
    "all at once": {
        "pid": pa.array([f"p{k % 59:03}" for k in range(60)]),
        "code": pa.array([f"c{k % 59}" for k in range(60)]),
        "geometry": swapped(),
        "day": pa.array([True] * 60),
    },
}
RULES = {
    "good": set(),
    "a key twice": {"key_duplicate"},
    "a value twice": {"unique"},
    "a row with its axes swapped": {"axis_order"},
    "a column of another type": {"column_type"},
    "a null key": {"key_null"},
    "all at once": {"key_duplicate", "unique", "axis_order", "column_type"},
}


@pytest.fixture
def product(estate):
    return estate(FIELDS, geometry_type="point", precision=2, epsg=25832, extent=EXTENT)


def once(counts, *paths):
    opened, readings, rows = counts
    assert opened == readings == {str(path): 1 for path in paths}
    assert rows == {str(path): 60 for path in paths}


@pytest.mark.parametrize("what", DELIVERIES)
def test_a_publish_reads_its_delivery_once(product, tmp_path, counts, what):
    path = deliver(tmp_path / "1.parquet", **DELIVERIES[what])
    night = product.publish(path)
    assert {each.rule for each in night.result.findings if each.severity == "error"} == RULES[what], night.said
    once(counts, path)


@pytest.mark.parametrize("what", DELIVERIES)
def test_a_second_publish_reads_its_delivery_once(product, tmp_path, counts, what):
    product.publish(deliver(tmp_path / "0.parquet"))
    for each in counts:
        each.clear()
    path = deliver(tmp_path / "1.parquet", **DELIVERIES[what])
    night = product.publish(path)
    assert {each.rule for each in night.result.findings if each.severity == "error"} == RULES[what], night.said
    once(counts, path)


@pytest.mark.parametrize("what", DELIVERIES)
def test_a_check_reads_its_delivery_once(product, tmp_path, counts, what):
    path = deliver(tmp_path / "1.parquet", **DELIVERIES[what])
    product.write(path)
    publication = read_publication(str(product.folder / "product.yaml"))
    result, _ = check(publication, CheckSettings(str(path), "contract", page=True))
    assert {each.rule for each in result.findings if each.severity == "error"} == RULES[what]
    once(counts, path)


@pytest.mark.parametrize("settings", [ComparisonSettings(), ComparisonSettings(key=("pid",))], ids=["found", "named"])
def test_a_comparison_reads_each_side_once(tmp_path, counts, settings):
    older, newer = deliver(tmp_path / "1.parquet"), deliver(tmp_path / "2.parquet", code=pa.array([f"x{k}" for k in range(60)]))
    with compared(str(older), str(newer), settings) as found:
        assert found.result.delta.changed == 60
    once(counts, older, newer)


def test_a_comparison_under_a_contract_reads_each_side_once(product, tmp_path, counts):
    older, newer = deliver(tmp_path / "1.parquet"), deliver(tmp_path / "2.parquet", code=pa.array([f"x{k}" for k in range(60)]))
    product.write(older)
    terms = ComparisonSettings(key=("pid",), contract=str(product.folder / "product.contract.yaml"))
    with compared(str(older), str(newer), terms) as found:
        assert found.result.delta.changed == 60
    once(counts, older, newer)


def test_a_draft_reads_each_delivery_once(tmp_path, counts):
    older, newer = deliver(tmp_path / "1.parquet"), deliver(tmp_path / "2.parquet", code=pa.array([f"x{k}" for k in range(60)]))
    init(str(newer), previous=str(older), out=str(tmp_path))
    once(counts, older, newer)


@pytest.mark.parametrize(
    ("version", "start", "status"),
    [(1, 1, "applied"), (2, 1, "unchanged"), (1, 2, "refused")],
    ids=["where the step starts", "where it ends", "elsewhere"],
)
@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_a_copy_is_read_once(product, tmp_path, counts, ending, version, start, status):
    """Its digest at the start of the step, that at the end under another contract, and its rows."""
    product.publish(deliver(tmp_path / "1.parquet"))
    product.publish(deliver(tmp_path / "2.parquet", code=pa.array([f"c{k}" if k else "new" for k in range(60)])))
    product.terms["schema_fields"].append({"name": "use", "type": "string"})
    product.stamp("v1.1.0")
    product.publish(deliver(tmp_path / "3.parquet", use=pa.array(["field"] * 60)))
    copy = tmp_path / f"copy.{ending}"
    extract.version_file(product.dataset.version(version), str(copy))
    taken = step.of_dataset(product.dataset, start, 2 if status == "unchanged" else 3)
    for each in counts:
        each.clear()
    assert apply(taken, str(copy)).status == status
    opened, readings, rows = counts
    assert (opened[str(copy)], readings[str(copy)], rows[str(copy)]) == (1, 1, 60)
    assert set(opened.values()) == set(readings.values()) == {1}
