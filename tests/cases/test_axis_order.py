"""Case N08: positions that fit both ways round; a first version becomes the reference of all later ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from shapely import Point

from estate import save
from merestone.drafts.init import init
from merestone.line.publish import PublishSettings, publish
from merestone.publication.reader import read_publication

CASES = Path(__file__).parent
KEY = {"name": "pid", "type": "string", "nullable": False}


def product(estate, **clauses):
    return estate([KEY], key="pid", geometry_type="point", **{"extent": None, **clauses})


def without_extent(made):
    """A contract in degrees that states no extent."""
    del made.terms["extent"]
    made.sees_the_order = False
    return made


@pytest.mark.parametrize("name", ["good", "swapped"])
def test_n08_a_first_publish_stops_until_a_person_has_said_where_positions_lie(estate, name):
    made = without_extent(product(estate))
    night = made.publish(CASES / f"N08/{name}.gpkg")
    assert (night.status, night.result.refused_by, made.version) == ("refused", "guard", None), night.said
    assert ("geometry", "axis_order") in night.rules("error")
    assert "fit" in night.said or "undecidable" in night.said
    again = made.publish(CASES / f"N08/{name}.gpkg", confirm=night.result.confirm)
    assert again.status == "published", again.said
    assert ("geometry", "axis_order") in again.rules("warning")


def test_n08_with_an_extent_the_good_file_passes_and_the_swapped_one_is_refused(estate):
    made = product(estate, extent=[51, 4, 54, 7])
    night = made.publish(CASES / "N08/swapped.gpkg")
    assert (night.status, night.result.refused_by) == ("refused", "contract"), night.said
    assert ("geometry", "axis_order") in night.rules("error")
    assert made.publish(CASES / "N08/good.gpkg").status == "published"


def test_n08_an_extent_that_waits_for_a_person_is_no_evidence(estate):
    made = product(estate, extent=[51, 4, 54, 7])
    made.write(CASES / "N08/good.gpkg")
    contract = made.folder / "product.contract.yaml"
    lines = [f"{name}: {value}" for name, value in made.terms.items() if name not in ("extent", "schema_fields")]
    contract.write_text(
        "\n".join([*lines, "extent: [51, 4, 54, 7]  # confirm", "schema_fields:", "  - {name: pid, type: string, nullable: false}"])
    )
    result = publish(read_publication(str(made.folder / "product.yaml")), PublishSettings())
    assert result.refused_by == "guard"
    contract.write_text(contract.read_text().replace("  # confirm", ""))
    assert publish(read_publication(str(made.folder / "product.yaml")), PublishSettings()).status == "published"


def test_an_extent_that_overlaps_its_own_mirror_image_states_the_order(estate):
    made = product(estate, extent=[-180, -90, 180, 90])
    night = made.publish(CASES / "N08/good.gpkg")
    assert night.status == "published", night.said
    assert ("geometry", "axis_order") not in night.rules()


def test_n08_init_drafts_no_extent_where_the_order_cannot_be_seen(tmp_path):
    made = init(str(CASES / "N08/swapped.gpkg"), out=str(tmp_path))
    lines = made.contract.read_text().splitlines()
    assert not [each for each in lines if each.startswith("extent:")]
    boxes = [each for each in lines if each.startswith("# extent:")]
    assert len(boxes) == 2
    assert boxes[0].split("]")[0] != boxes[1].split("]")[0]
    assert sum("extent: [" in each for each in made.notes) == 2
    kept = made.contract.read_text().replace(boxes[1], boxes[1].removeprefix("# "))
    made.contract.write_text(kept)
    result = publish(read_publication(str(made.publication)), PublishSettings())
    assert result.refused_by == "contract", "the box of the exchanged order shows the swap"


@pytest.mark.parametrize("exchanged", [False, True])
def test_the_boxes_of_a_draft_of_two_exports_hold_no_exchanged_one(tmp_path, exchanged):
    """One box for both orders would let either pass for good."""

    def boxes(**options):
        made = init(
            str(save([{"pid": str(n), "geometry": Point(9 + n / 100, 50 + n / 100)} for n in range(60)], tmp_path / "b.gpkg")), **options
        )
        return [each.split("]")[0] for each in made.contract.read_text().splitlines() if each.startswith("# extent:")], made.notes

    points = [Point(9 + n / 50, 50 + n / 50) for n in range(60)]
    older = save(
        [{"pid": str(n), "geometry": Point(each.y, each.x) if exchanged else each} for n, each in enumerate(points)], tmp_path / "a.gpkg"
    )
    alone, _ = boxes(out=str(tmp_path / "alone"))
    both, notes = boxes(previous=str(older), out=str(tmp_path / "both"))
    assert len(both) == 2
    assert (both == alone) == exchanged
    assert any("with another order of axes" in each for each in notes) == exchanged


def test_init_drafts_a_grown_extent_where_the_order_is_measured(tmp_path):
    rows = [{"pid": str(n), "geometry": Point(500_000 + 10 * n, 5_600_000 + n)} for n in range(50)]
    made = init(str(save(rows, tmp_path / "utm.gpkg", epsg=25832)), out=str(tmp_path / "out"))
    (line,) = [each for each in made.contract.read_text().splitlines() if each.startswith("extent:")]
    assert line.startswith("extent: [499951, 5599995, 500539, 5600054]  # confirm")
    assert publish(read_publication(str(made.publication)), PublishSettings()).status == "published"


def test_where_all_rows_fit_one_way_and_none_the_other_the_verdict_follows(estate, tmp_path):
    """0 of 60 as given, 60 exchanged: none is far enough from the box to say so by itself."""
    made = product(estate, extent=[8.0, 9.0, 10.0, 11.0])
    rows = [{"pid": str(n), "geometry": Point(10.2 + n / 100, 8.2 + n / 100)} for n in range(60)]
    night = made.publish(save(rows, tmp_path / "a.gpkg", epsg=4326))
    assert night.status == "refused"
    assert "x and y are swapped" in night.said
    assert "holds 0 of 60 rows as given, 60 with x and y exchanged" in night.said
