"""A consumer holds what is published to the contract that it relies on, as a delivery is held to it."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
import shapely

import merestone
from estate import Estate, geoparquet
from merestone.errors import UsageError

FIELDS = [{"name": "pid", "type": "string", "nullable": False}, {"name": "use", "type": "string"}]


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    """Two versions under two contracts; the second has a field more, and a value that the first consumer does not know."""
    made = Estate(tmp_path_factory.mktemp("consumer"), FIELDS, geometry_type="point").as_cases_run()
    shapes = [shapely.Point(5, 52 + n / 100) for n in range(5)]
    columns = {"pid": pa.array(list("abcde")), "use": pa.array(["home"] * 5)}
    made.publish(geoparquet(made.folder / "1.parquet", {**columns, "geometry": shapes}))
    made.old = json.loads(json.dumps(made.terms))
    made.stamp("v1.1.0")
    made.terms["schema_fields"] = [*FIELDS, {"name": "floors", "type": "integer"}]
    columns |= {"use": pa.array(["home", "home", "mine", "home", "home"]), "floors": pa.array([1, 2, 3, 4, 5])}
    made.publish(geoparquet(made.folder / "2.parquet", {**columns, "geometry": shapes}))
    return made


def relied_on(product, name, **clauses):
    path = product.folder / f"{name}.contract.yaml"
    path.write_text(json.dumps(product.old | clauses))
    return path


@pytest.mark.parametrize("address", ["published", "product.yaml", "published@1"])
@pytest.mark.parametrize("order", ["lon_lat", "lat_lon"])
def test_a_version_keeps_the_contract_of_a_consumer_whatever_was_added_since(product, address, order):
    """The extent says which ordinate is which: a version is read in the order that the consumer's contract states."""
    result = merestone.check(product.folder / address, contract=relied_on(product, order, axis_order=order, extent=[4, 51, 6, 53]))
    assert (result.status, result.rows) == ("pass", 5)
    assert {each.rule for each in result.findings} <= {"extra", "precision"}


def test_what_breaks_it_is_found_in_the_version_that_has_it(product):
    strict = relied_on(product, "strict", semantics={"use": {"enum": ["home"]}}, max_features=4)
    now, before = (merestone.check(product.folder / address, contract=strict) for address in ("published", "published@1"))
    assert (now.status, before.status) == ("fail", "fail")
    assert {each.rule for each in before.findings if each.severity == "error"} == {"max_features"}
    found = {each.rule: each for each in now.findings if each.severity == "error"}
    assert found.keys() == {"max_features", "enum"}
    assert [sample.id for sample in found["enum"].features] == ["c"]
    other = relied_on(product, "crs", crs_epsg=4258, contract_version="v1.0.0-crs:EPSG:4258-res:1m")
    assert "crs_mismatch" in {each.rule for each in merestone.check(product.folder / "published", contract=other).findings}


def test_a_version_that_is_not_there_is_no_pass(product):
    with pytest.raises(UsageError, match="no version 9"):
        merestone.check(f"{product.folder / 'published'}@9", contract=relied_on(product, "nine"))
