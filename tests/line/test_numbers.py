"""Number fields that promise decimals or digits: what is stored, what is a change, and what is only noise in their last digits."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from estate import geoparquet

N = 40
PID = {"name": "pid", "type": "integer", "nullable": False}
NAME = {"name": "name", "type": "string"}


def deliver(path, values, names=None):
    columns = {"pid": pa.array(range(len(values))), "name": pa.array(names or ["x"] * len(values)), "share": pa.array(values, pa.float64())}
    return geoparquet(
        path, {**columns, "geometry": [b"\x01\x01\x00\x00\x00" + np.array([float(k), 50.0]).tobytes() for k in range(len(values))]}
    )


def stored(product):
    frame = product.dataset.to_geodataframe().sort_values("pid")
    return [None if math.isnan(each) else each for each in frame["share"].tolist()]


@pytest.fixture
def product(estate):
    def make(**clauses):
        made = estate([PID, NAME, {"name": "share", "type": "number", **clauses}], geometry_type="point")
        made.settings["guard"] = {"max_changed_fraction": 1.0}
        return made

    return make


@pytest.mark.parametrize(
    ("clause", "delivered", "kept"),
    [
        ({"decimals": 2}, [1.005, 2.675, 0.125, -0.004, 0.1 + 0.2, None], [1.0, 2.67, 0.12, 0.0, 0.3, None]),
        ({"decimals": 0}, [0.5, 1.5, 2.5, 1e9 + 0.4, None], [0.0, 2.0, 2.0, 1e9, None]),
        ({"digits": 3}, [12345.0, 0.00123456, 9.996, -99.96, 0.0, 1e-15], [12300.0, 0.00123, 10.0, -100.0, 0.0, 1e-15]),
        ({"digits": 15}, [0.1 + 0.2, 1 / 3], [0.3, 0.333333333333333]),
    ],
)
def test_numbers_are_stored_as_they_are_promised(product, tmp_path, clause, delivered, kept):
    made = product(**clause)
    result = made.publish(deliver(tmp_path / "1.parquet", delivered))
    assert result.status == "published", result.said
    assert stored(made) == kept
    if "decimals" in clause:
        assert kept == [None if each is None else round(each, clause["decimals"]) + 0.0 for each in delivered]
    # What was published, delivered again, is what was published.
    assert made.publish(deliver(tmp_path / "2.parquet", kept)).status == "unchanged"


@pytest.mark.parametrize("clause", [{"decimals": 6}, {"digits": 9}, {"digits": 15}], ids=str)
def test_noise_in_the_last_bit_is_no_change(product, tmp_path, clause):
    values = np.random.default_rng(1).uniform(0.1, 1000, N)
    made = product(**clause)
    made.publish(deliver(tmp_path / "1.parquet", values.tolist()))
    for night, way in enumerate((np.inf, -np.inf)):
        result = made.publish(deliver(tmp_path / f"n{night}.parquet", np.nextafter(values, way).tolist()))
        assert (result.status, made.version) == ("unchanged", 1), result.said
    changed = values.copy()
    changed[:3] += 2 * 10.0 ** -clause.get("decimals", clause.get("digits", 0) - 3)
    result = made.publish(deliver(tmp_path / "3.parquet", changed.tolist()))
    assert (result.result.delta.changed, result.result.unchanged + result.result.delta.suppressed) == (3, N - 3), result.said


def test_without_a_promise_every_bit_counts(product, tmp_path):
    values = np.random.default_rng(1).uniform(0.1, 1000, N)
    made = product()
    made.publish(deliver(tmp_path / "1.parquet", values.tolist()))
    assert made.publish(deliver(tmp_path / "2.parquet", np.nextafter(values, np.inf).tolist())).result.delta.changed == N


@pytest.mark.parametrize(("noise", "suppressed"), [(None, 4), (0.2, 5), (0, 0)])
def test_noise_is_measured_in_steps_from_the_published_value(product, tmp_path, noise, suppressed):
    """0.25 is published; each value beyond rounds to another step."""
    made = product(decimals=2, **({} if noise is None else {"noise": noise}))
    made.publish(deliver(tmp_path / "1.parquet", [0.25] * 6))
    result = made.publish(deliver(tmp_path / "2.parquet", [0.2551, 0.2554, 0.2446, 0.2449, 0.2566, 0.2575])).result
    assert (result.delta.suppressed, result.delta.changed) == (suppressed, 6 - suppressed)


def test_a_changed_feature_keeps_the_numbers_that_only_noise_moved(product, tmp_path):
    made = product(decimals=2)
    made.publish(deliver(tmp_path / "1.parquet", [0.25, 0.25, 0.25]))
    night = made.publish(deliver(tmp_path / "2.parquet", [0.2554, 0.2554, 0.27], ["new", "x", "x"]))
    assert (night.result.delta.changed, night.result.delta.suppressed) == (2, 1)
    assert stored(made) == [0.25, 0.25, 0.27]
    log = {key: each["fields"] for key, each in night.log.items()}
    assert sorted(map(tuple, (each for each in log.values() if each))) == [("name",), ("share",)]
    # The same again: nothing moves, and nothing is hidden from the next comparison.
    assert made.publish(deliver(tmp_path / "3.parquet", [0.2554, 0.2554, 0.27], ["new", "x", "x"])).status == "unchanged"
    assert made.publish(deliver(tmp_path / "4.parquet", [0.2649, 0.2649, 0.27], ["new", "x", "x"])).result.delta.changed == 2


def test_numbers_out_of_range_keep_their_bits_with_a_warning(product, tmp_path):
    made = product(decimals=3)
    values = [1.2345, math.inf, 1e12 + 0.1234, -1e300, None]
    result = made.publish(deliver(tmp_path / "1.parquet", values))
    assert result.status == "published", result.said
    assert stored(made) == [1.234, math.inf, 1e12 + 0.1234, -1e300, None]
    (finding,) = [each for each in result.result.findings if each.rule == "decimals"]
    assert (finding.severity, finding.field, finding.count) == ("warning", "share", 3)
    assert made.publish(deliver(tmp_path / "2.parquet", values)).status == "unchanged"


def test_decimals_that_are_agreed_later_reprocess_and_change_nothing(product, tmp_path):
    made = product(decimals=4)
    values = np.random.default_rng(1).uniform(0.1, 9, N).tolist()
    made.publish(deliver(tmp_path / "1.parquet", values))
    made.stamp("v1.1.0")
    next(each for each in made.terms["schema_fields"] if each["name"] == "share")["decimals"] = 6
    night = made.publish(deliver(tmp_path / "2.parquet", values))
    finer = sum(round(each, 4) != round(each, 6) for each in values)
    assert (night.result.delta.touched, night.result.delta.reprocessed) == (0, finer), night.said
    assert stored(made) == [round(each, 6) for each in values]
