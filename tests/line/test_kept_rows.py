"""A published row that stays though what was delivered for it was not taken is judged under the contract in force."""

from __future__ import annotations

import pyarrow as pa
import pytest
from shapely import Point, Polygon, box

from estate import Estate, geoparquet
from merestone import check

BOW = Polygon([(5, 52), (6, 53), (6, 52), (5, 53)])
GOOD = {f"p{n}": ("home", box(5 + n / 100, 52, 5.005 + n / 100, 52.01)) for n in range(9)}


def delivery(path, rows):
    uses, shapes = zip(*rows.values(), strict=True)
    return geoparquet(path, {"pid": pa.array(list(rows)), "use": pa.array(uses, pa.string()), "geometry": list(shapes)})


@pytest.fixture
def product(tmp_path):
    """Published, with `N/A` in one row; a fault in a row is tolerated."""
    made = Estate(tmp_path, [{"name": "pid", "type": "string"}, {"name": "use", "type": "string"}]).as_cases_run()
    made.settings["rejects"] = {"max_fraction": 0.5}
    assert made.publish(delivery(tmp_path / "1.parquet", {**GOOD, "p3": ("N/A", GOOD["p3"][1])})).status == "published"
    return made


def tighten(product):
    product.terms["semantics"] = {"use": {"null_means": "not known"}}
    product.stamp("v1.1.0")


def test_a_held_row_that_breaks_the_new_contract_refuses_the_run(product, tmp_path):
    tighten(product)
    night = product.publish(delivery(tmp_path / "2.parquet", {**GOOD, "p3": ("home", BOW)}))
    assert (night.status, night.result.refused_by) == ("refused", "contract")
    held = next(each for each in night.result.findings if each.rule == "held_row")
    assert [(each.id, each.row) for each in held.features] == [("p3", 4)]
    assert "use null_convention: 'N/A'" in held.observed


def test_a_held_row_that_keeps_the_new_contract_stays(product, tmp_path):
    tighten(product)
    night = product.publish(delivery(tmp_path / "2.parquet", {**GOOD, "p5": ("home", BOW)}))
    assert night.status == "published"
    assert night.result.held == 1


def test_a_row_that_is_removed_is_not_held_to_it(product, tmp_path):
    tighten(product)
    product.settings["rejects"]["published"] = "remove"
    night = product.publish(delivery(tmp_path / "2.parquet", {**GOOD, "p3": ("home", BOW)}))
    assert night.status == "published"
    assert night.classes["p3"] == "removed"


def test_more_rejected_rows_than_the_publication_lets_pass_name_the_limit_and_their_share(product, tmp_path):
    product.settings["rejects"]["max_fraction"] = 0.2
    path = delivery(tmp_path / "2.parquet", {**GOOD, "p3": ("home", BOW), "p5": ("home", BOW), "p7": ("home", BOW)})
    night = product.publish(path)
    assert (night.status, night.result.refused_by) == ("refused", "contract")
    checked = check(product.folder / "product.yaml", source=path)
    assert checked.status == "fail"
    for findings in (night.result.findings, checked.findings):
        found = next(each for each in findings if each.rule == "rejected_share")
        assert (found.expected, found.observed) == (
            "at most 20 % of the rows rejected, as `rejects.max_fraction` says",
            "33 % of the rows rejected (3 of 9)",
        )
    product.settings["rejects"]["max_fraction"] = 0.4
    assert product.publish(path).status != "refused"
    assert not any(each.rule == "rejected_share" for each in product.publish(path).result.findings)


def test_under_the_contract_of_the_last_version_a_held_row_was_judged_before(product, tmp_path):
    night = product.publish(delivery(tmp_path / "2.parquet", {**GOOD, "p3": ("home", BOW)}))
    assert (night.status, night.result.held) == ("unchanged", 1)


def test_what_lies_within_noise_is_stored_anew_where_the_published_form_breaks_the_new_contract(tmp_path):
    made = Estate(tmp_path, [{"name": "pid", "type": "string"}], precision=2, epsg=28992).as_cases_run()
    points = {f"p{n}": Point(150_000 + n, 460_000) for n in range(9)}

    def night(name, x):
        shapes = {**points, "p0": Point(x, 460_000)}
        return geoparquet(tmp_path / name, {"pid": pa.array(list(shapes)), "geometry": list(shapes.values())}, epsg=28992)

    made.publish(night("1.parquet", 149_999.98))
    made.terms["extent"] = [149_999.99, 459_000, 150_100, 461_000]
    made.stamp("v1.1.0")
    again = made.publish(night("2.parquet", 149_999.985004))  # on the published grid half a step from the published point, and inside
    assert again.status == "published"
    assert again.result.delta.suppressed == 0
