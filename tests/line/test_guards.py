"""Guards: each one set, tripped, told with its likely cause, and confirmed; early where the passes would cost much, together where not."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from shapely import points as shapely_points
from shapely import to_wkb

from estate import geoparquet
from merestone.line import environment
from merestone.line.judging import guards_before_processing as before
from merestone.line.judging.mass_change import column_cause

PID = {"name": "pid", "type": "integer", "nullable": False}
NAME = {"name": "name", "type": "string"}
AREA = {"name": "area", "type": "number"}
EAST, NORTH = 500_000.0, 5_600_000.0


class Night:
    """Rows of points in columns, to be edited and delivered."""

    def __init__(self, n=100, seed=1):
        draw = np.random.default_rng(seed)
        self.pid = np.arange(1, n + 1)
        self.xy = np.round(np.stack([EAST + draw.uniform(0, 1000, n), NORTH + draw.uniform(0, 1000, n)], axis=1), 3)
        self.name = [f"name {k}" for k in self.pid]
        self.area = draw.uniform(100, 900, n).round(1)
        self.district = np.array(["north", "south", "east", "west"])[self.pid % 4]
        self.missing = np.zeros(n, bool)

    def keep(self, rows):
        for name in ("pid", "xy", "area", "district", "missing"):
            setattr(self, name, getattr(self, name)[rows])
        self.name = [each for each, kept in zip(self.name, rows, strict=True) if kept]
        return self

    def save(self, path):
        wkb = [None if gone else each for each, gone in zip(to_wkb(shapely_points(self.xy)), self.missing, strict=True)]
        return geoparquet(
            path,
            {
                "pid": pa.array(self.pid),
                "name": pa.array(self.name, pa.string()),
                "area": pa.array(self.area),
                "district": pa.array(self.district),
                "geometry": wkb,
            },
            epsg=25832,
        )


@pytest.fixture
def product(estate):
    made = estate(
        [PID, NAME, AREA, {"name": "district", "type": "string"}],
        epsg=25832,
        precision=3,
        geometry_type="point",
        geometry={"nullable": True},
    )
    made.settings["guard"] = {
        "max_changed_fraction": 10,
        "min_touched": 0,
    }  # out of reach: each test here is of one guard alone, and says which
    return made


def moved_to(night, dx=0.0, dy=0.0):
    night.xy = np.round(night.xy + np.array([dx, dy]), 3)


def halve(night):
    night.keep(night.pid % 2 == 0)


def without(*districts):
    return lambda night: night.keep(~np.isin(night.district, districts))


def renumber(night):
    night.pid = night.pid + 1000


def lose(night, share=1.0):
    night.missing[: int(len(night.pid) * share)] = True


def rename(night):
    night.name = [each.upper() for each in night.name]


def nameless(night):
    night.name = [None] * len(night.name)


def hectares(night):
    night.area = night.area / 10_000


def swap(night):
    night.xy = night.xy[:, ::-1].copy()


def null_island(night):
    night.xy[0] = 0


@pytest.mark.parametrize(
    ("guard", "limit", "edit", "words"),
    [
        ("max_removed_fraction", 0.1, halve, ["guard.removed", "50 % removed", "at most 10 %"]),
        ("max_removed_fraction", 0.1, without("north"), ["25 % removed", "Nothing was delivered for 1 of 4 partitions (district=north)"]),
        ("max_removed_fraction", 0.1, renumber, ["100 % removed", "renumbered", "new pid"]),
        ("min_key_survival", 0.9, halve, ["guard.key_survival", "50 % of the keys survive", "at least 90 %"]),
        ("min_key_survival", 0.9, renumber, ["0 % of the keys survive", "renumbered"]),
        (
            "max_moved_fraction",
            0.1,
            lambda night: setattr(night, "district", np.where(night.district == "north", "NORD", night.district)),
            ["guard.moved", "25 % moved", "from district=north to district=NORD: the value was renamed"],
        ),
        (
            "max_null_geometry_fraction",
            0.1,
            lambda night: lose(night, 0.3),
            ["guard.null_geometry", "30 % of the rows are without geometry"],
        ),
        ("max_null_geometry_fraction", 0.1, lose, ["100 % of the rows", "The export lost the geometry"]),
        (
            "max_extent_shift",
            0.1,
            lambda night: moved_to(night, dx=5000),
            ["guard.extent_shift", "5,000.00 m to the east", "datum or CRS change"],
        ),
        ("max_extent_shift", 0.1, null_island, ["Positions at 0, 0"]),
        ("max_extent_shift", 0.1, lambda night: night.keep(night.xy[:, 0] < EAST + 300), ["a part of the old extent only"]),
        (
            "max_extent_shift",
            0.1,
            lambda night: setattr(night, "xy", np.vstack([[EAST - 9000, NORTH], night.xy[1:]])),
            ["1 rows reach out"],
        ),
        (
            "max_column_changed_fraction",
            0.5,
            rename,
            ["guard.column_changed", "100 % of the values of name changed", "case or blanks only"],
        ),
        ("max_column_changed_fraction", 0.5, nameless, ["It is null now"]),
        ("max_column_changed_fraction", 0.5, hectares, ["area", "times 0.0001: another unit"]),
        ("max_changed_fraction", 0.2, lambda night: moved_to(night, dy=-0.96), ["guard.changed", "100 % changed", "0.96 m to the south"]),
        ("max_changed_fraction", 0.2, lambda night: setattr(night, "xy", night.xy / 1000), ["times 0.001: another unit"]),
    ],
)
def test_a_guard_stops_names_its_cause_and_yields_to_its_token(product, tmp_path, guard, limit, edit, words):
    product.settings["guard"][guard] = limit
    if "moved" in guard:  # district places and is no content
        product.terms["schema_fields"] = [each for each in product.terms["schema_fields"] if each["name"] != "district"]
    product.by_column("district")
    product.publish(Night().save(tmp_path / "1.parquet"))
    assert product.version == 1
    before = product.bytes_of()
    night = Night()
    edit(night)
    stop = product.publish(night.save(tmp_path / "2.parquet"))
    assert (stop.status, stop.result.refused_by, product.version) == ("refused", "guard", 1), stop.said
    for each in words:
        assert each in stop.said, stop.said
    assert product.bytes_of() == before
    assert {each.rule for each in stop.result.findings if each.severity == "error"} == {
        words[0].partition(".")[2]
    } or "guard." not in words[0]
    done = product.publish(tmp_path / "2.parquet", confirm=stop.result.confirm)
    assert (done.status, product.version) == ("published", 2), done.said


def test_only_what_an_export_makes_anew_is_called_volatile(product, tmp_path):
    """Edited prices, codes under a wrong key and a code list are content, however many rows they change in."""
    product.settings["guard"]["max_column_changed_fraction"] = 0.5
    product.publish(Night().save(tmp_path / "1.parquet"))
    edits = {
        "guid": lambda night: setattr(night, "name", [f"{each:032x}" for each in range(7**30, 7**30 + 100 * 3**60, 3**60)]),
        "codes of other rows": lambda night: setattr(night, "name", [*night.name[1:], night.name[0]]),
        "prices that were drawn anew for most": lambda night: setattr(
            night, "area", np.where(night.pid > 7, np.random.default_rng(5).uniform(100, 900, len(night.pid)), night.area)
        ),
        "prices": lambda night: setattr(night, "area", night.area * 1.07),
        "code list": lambda night: setattr(night, "district", np.roll(night.district, 1)),
    }
    for what, edit in edits.items():
        night = Night()
        edit(night)
        stop = product.publish(night.save(tmp_path / "2.parquet"))
        assert stop.result.refused_by == "guard", stop.said
        assert ("`volatile`" in stop.said) == (what == "guid"), f"{what}: {stop.said}"
        assert "edited as a whole" in stop.said or what == "guid", f"{what}: {stop.said}"


@pytest.mark.parametrize(
    ("guard", "limit", "edit"),
    [
        ("max_removed_fraction", 0.5, halve),
        ("min_key_survival", 0.5, halve),
        ("max_null_geometry_fraction", 0.3, lambda night: lose(night, 0.3)),
        ("max_column_changed_fraction", 1.0, rename),
        ("max_changed_fraction", 1.0, rename),
        ("max_extent_shift", 0.1, lambda night: moved_to(night, dx=3)),
    ],
)
def test_the_limit_itself_passes(product, tmp_path, guard, limit, edit):
    product.settings["guard"][guard] = limit
    product.publish(Night().save(tmp_path / "1.parquet"))
    night = Night()
    edit(night)
    done = product.publish(night.save(tmp_path / "2.parquet"))
    assert done.status == "published", done.said


def test_swapped_axes_are_a_breach_that_nobody_can_confirm(product, tmp_path):
    product.settings["guard"]["max_extent_shift"] = 0.1
    product.publish(Night().save(tmp_path / "1.parquet"))
    night = Night()
    swap(night)
    stop = product.publish(night.save(tmp_path / "2.parquet"))
    assert (stop.result.refused_by, stop.result.confirm, product.version) == ("contract", None, 1), stop.said
    assert "crs.axis_order" in stop.said


def test_a_share_of_one_never_trips_on_a_change_of_everything(product, tmp_path):
    product.settings["guard"]["max_changed_fraction"] = 1.0
    product.publish(Night(7).save(tmp_path / "1.parquet"))
    for count, edit in enumerate((rename, renumber, lambda night: moved_to(night, dx=50))):
        night = Night(7)
        edit(night)
        done = product.publish(night.save(tmp_path / f"{count + 2}.parquet"))
        assert done.status == "published", done.said
        product.publish(tmp_path / "1.parquet")


def test_geometry_that_is_missing_is_guarded_from_the_first_version_on(product, tmp_path):
    product.settings["guard"]["max_null_geometry_fraction"] = 0.1
    night = Night()
    lose(night, 0.5)
    stop = product.publish(night.save(tmp_path / "1.parquet"))
    assert (stop.result.refused_by, product.version) == ("guard", None), stop.said
    assert product.publish(tmp_path / "1.parquet", confirm=stop.result.confirm).status == "published"


def test_a_token_that_does_not_fit_says_why_and_a_stop_that_is_repeated_prints_the_same_one(product, tmp_path, monkeypatch):
    product.settings["guard"] = {"min_touched": 0, "max_removed_fraction": 0.1, "max_changed_fraction": 10}
    first, half, less = (Night() for _ in range(3))
    halve(half)
    less.keep(less.pid % 3 == 0)
    for name, night in (("1", first), ("2", half), ("3", less)):
        night.save(tmp_path / f"{name}.parquet")

    def said(name, confirm=None):
        done = product.publish(tmp_path / f"{name}.parquet", confirm=confirm).result
        return done, "; ".join(done.notices)

    published, why = said("1", "aaaa-bbbb")
    assert (published.status, why) == ("published", "the token aaaa-bbbb was not needed: no guard stopped the run")
    stop, why = said("2")
    assert why == ""
    again, why = said("2", "aaaa-bbbb")
    assert why == "the token aaaa-bbbb does not fit: no run of this dataset gave it out"
    assert (again.confirm, again.expires) == (stop.confirm, stop.expires)
    other, why = said("3", stop.confirm)
    assert why == f"the token {stop.confirm} does not fit: it is the word for another delivery"
    assert other.confirm != stop.confirm
    product.settings["guard"] |= {"min_key_survival": 0.9}
    _, why = said("2", stop.confirm)
    assert "other guards stopped the run than it is for (key_survival)" in why
    product.settings["guard"].pop("min_key_survival")
    now = environment.now
    monkeypatch.setattr(environment, "now", lambda: now() + timedelta(days=8))
    late, why = said("2", stop.confirm)
    assert "it has expired (given out 2" in why
    assert late.confirm != stop.confirm
    assert said("2", late.confirm)[0].status == "published"
    said("1")
    _, why = said("3", other.confirm)
    assert "it was given out against v1, and v3 is current; it has expired" in why


def everything(product):
    product.settings["guard"] = {
        "min_touched": 0,
        "max_changed_fraction": 0.2,
        "max_removed_fraction": 0.1,
        "max_moved_fraction": 0.1,
        "min_key_survival": 0.9,
        "max_null_geometry_fraction": 0.1,
        "max_extent_shift": 0.1,
        "max_column_changed_fraction": 0.1,
    }


def worst(n):
    night = Night(n)
    night.keep(night.pid % 2 == 0)
    lose(night, 0.2)
    moved_to(night, dx=5000)
    rename(night)
    return night


def test_several_guards_stand_in_one_report_under_one_token(product, tmp_path):
    everything(product)
    product.publish(Night().save(tmp_path / "1.parquet"))
    stop = product.publish(worst(100).save(tmp_path / "2.parquet"))
    rules = {each.rule for each in stop.result.findings}
    assert rules == {"changed", "removed", "key_survival", "null_geometry", "extent_shift", "column_changed"}, stop.said
    assert product.records()[-1]["confirmations"][0]["guards"] == sorted(rules)
    assert product.publish(tmp_path / "2.parquet", confirm=stop.result.confirm).status == "published"


@pytest.fixture
def no_pass_2(monkeypatch):
    """Makes the whole of pass 2 fail: what stops before it does so without it."""
    from merestone.line import publish as line  # noqa: PLC0415 - patched in place

    def never(*_, **__):
        raise AssertionError("pass 2 ran")

    monkeypatch.setattr(before, "FEW", 1_500)
    return lambda: monkeypatch.setattr(line, "process", never)


def test_a_datum_shift_is_stopped_on_a_sample(product, tmp_path, no_pass_2, monkeypatch):
    product.settings["guard"]["max_changed_fraction"] = 0.2
    product.by_place(500)
    product.publish(Night(4000).save(tmp_path / "1.parquet"))
    no_pass_2()
    night = Night(4000)
    moved_to(night, dy=-0.96)
    stop = product.publish(night.save(tmp_path / "2.parquet"))
    assert (stop.status, stop.result.refused_by) == ("refused", "guard"), stop.said
    assert "at least 68 % changed, by a sample of 100 of 4,000" in stop.said
    assert "100 % of them by the same 0.96 m to the south: a datum or CRS change" in stop.said
    again = product.publish(tmp_path / "2.parquet")
    assert [each.observed for each in again.result.findings] == [each.observed for each in stop.result.findings]
    monkeypatch.undo()
    monkeypatch.setattr(before, "FEW", 1_500)
    done = product.publish(tmp_path / "2.parquet", confirm=again.result.confirm)
    assert (done.status, done.result.delta.changed) == ("published", 4000), done.said


def test_keys_and_measures_stop_before_pass_2(product, tmp_path, no_pass_2, monkeypatch):
    everything(product)
    product.publish(Night(8000).save(tmp_path / "1.parquet"))
    no_pass_2()
    stop = product.publish(worst(8000).save(tmp_path / "2.parquet"))
    early_rules = {each.rule for each in stop.result.findings}
    assert early_rules == {"changed", "removed", "key_survival", "null_geometry", "extent_shift"}, stop.said
    monkeypatch.undo()
    # The token covers what fired before pass 2. What pass 2 finds besides asks again, for all of it at once.
    monkeypatch.setattr(before, "FEW", 1_500)
    more = product.publish(tmp_path / "2.parquet", confirm=stop.result.confirm)
    assert (more.status, product.version) == ("refused", 1)
    assert {each.rule for each in more.result.findings} == early_rules | {"column_changed"}, more.said
    assert product.publish(tmp_path / "2.parquet", confirm=more.result.confirm).status == "published"


def test_a_doubtful_share_is_left_to_pass_2(product, tmp_path, monkeypatch):
    monkeypatch.setattr(before, "FEW", 1_500)
    product.settings["guard"]["max_changed_fraction"] = 0.2
    product.publish(Night(5000).save(tmp_path / "1.parquet"))
    night = Night(5000)
    night.area[:1250] += 1  # 25 %: above the limit, and within the doubt of a sample only because all others are candidates too
    product.stamp("v1.1.0")
    product.terms["schema_fields"][2]["nullable"] = False  # other rules: every row is looked at again
    stop = product.publish(night.save(tmp_path / "2.parquet"))
    assert stop.result.refused_by == "guard", stop.said
    assert "25 % changed" in stop.said
    assert "sample" not in stop.said


def test_rows_in_other_bytes_do_not_stop_on_a_sample(product, tmp_path, monkeypatch):
    monkeypatch.setattr(before, "FEW", 1_500)
    product.settings["guard"]["max_changed_fraction"] = 0.2
    product.publish(Night(3000).save(tmp_path / "1.parquet"))
    product.stamp("v1.1.0")
    product.terms["schema_fields"][2]["nullable"] = False
    done = product.publish(tmp_path / "1.parquet")
    assert (done.status, done.result.delta.touched, done.result.unchanged) == ("published", 0, 3000), done.said


def test_row_numbers_as_keys_are_seen_on_a_sample(product, tmp_path, no_pass_2):
    product.settings["guard"]["max_changed_fraction"] = 0.2
    product.publish(Night(4000).save(tmp_path / "1.parquet"))
    no_pass_2()
    night = Night(4000)
    night.pid = np.roll(night.pid, 1)
    stop = product.publish(night.save(tmp_path / "2.parquet"))
    assert "100 of 100 contents were found again under other keys" in stop.said, stop.said


def test_the_extent_is_compared_in_the_delivered_crs(product, tmp_path):
    """A box in one CRS is not a box in another: the same rows again are no shift at all."""
    product.terms |= {"crs_epsg": 4326, "contract_version": "v1.0.0-crs:EPSG:4326-res:1m", "coordinate_precision": 7}
    product.terms["extent"] = [8, 50, 10, 52]
    product.settings["crs"] = {"accept": ["EPSG:25832"]}
    product.settings["guard"]["max_extent_shift"] = 1e-9
    product.publish(Night().save(tmp_path / "1.parquet"))
    assert product.manifest().delivery["extent"] is not None
    night = Night()
    night.area[0] += 1
    assert product.publish(night.save(tmp_path / "2.parquet")).status == "published"
    moved_to(night, dx=0.01)
    stop = product.publish(night.save(tmp_path / "3.parquet"))
    assert {each.rule for each in stop.result.findings} == {"extent_shift"}, stop.said


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (["Fl\u00c3\u00a9chin", "B\u00c3\u00a9thune"], "Fl\u00e9chin became Fl\u00c3\u00a9chin"),  # UTF-8 taken for Windows-1252
        (["Fl?chin", "B?thune"], "misread"),
        (["Fl\ufffdchin", "B\ufffdthune"], "misread"),
        (["Flechin", "Bethune"], ""),
        (["Fl\u00e9chin 1", "B\u00e9thune 1"], ""),
    ],
)
def test_text_that_was_decoded_wrongly_is_told_with_an_example(now, told):
    then = ["Fl\u00e9chin", "B\u00e9thune"]
    sides = [pa.table({"name": pa.array(each, pa.string())}) for each in (now, then)]
    said = column_cause(SimpleNamespace(sample=[tuple(sides)], column_changes={"name": 2}), "name", lambda *_: 0.0, 2)
    assert told in said
    assert bool(said) == bool(told)


FEW = {  # guard, limit, and an edit of one or two of four features: a quarter to a half
    "changed": ("max_changed_fraction", 0.2, lambda night: night.area.__setitem__(0, -1)),
    "removed": ("max_removed_fraction", 0.2, lambda night: night.keep(night.pid != night.pid[0])),
    "key_survival": ("min_key_survival", 0.8, lambda night: night.keep(night.pid != night.pid[0])),
    "column_changed": ("max_column_changed_fraction", 0.2, lambda night: night.area.__setitem__(0, -1)),
}


@pytest.mark.parametrize("rule", FEW)
@pytest.mark.parametrize(("least", "stops"), [(None, False), (0, True), (1, True)], ids=["default", "none", "reached"])
def test_a_share_of_few_features_is_no_mass_change(product, tmp_path, rule, least, stops):
    """One of four features is 25 %, and one feature."""
    guard, limit, edit = FEW[rule]
    product.settings["guard"] = {"max_changed_fraction": 10, guard: limit, **({} if least is None else {"min_touched": least})}
    product.publish(Night(4).save(tmp_path / "1.parquet"))
    night = Night(4)
    edit(night)
    told = product.publish(night.save(tmp_path / "2.parquet"))
    assert ({each.rule for each in told.result.findings if each.surface == "guard"} == {rule}) is stops, told.said
    assert (told.status == "published") is not stops


def test_above_a_half_few_features_stop_too(product, tmp_path):
    product.settings["guard"] = {"max_changed_fraction": 0.2}
    product.publish(Night(4).save(tmp_path / "1.parquet"))
    night = Night(4)
    night.area[:2] = -1
    assert product.publish(night.save(tmp_path / "2.parquet")).status == "published"
    night.area[:] = -2
    told = product.publish(night.save(tmp_path / "3.parquet"))
    assert ([each.rule for each in told.result.findings], told.result.findings[0].expected) == (["changed"], "at most 50 % changed")


def test_shares_of_rows_and_extents_know_no_few(product, tmp_path):
    product.settings["guard"] = {"max_changed_fraction": 10, "max_null_geometry_fraction": 0.2, "max_extent_shift": 0.1}
    product.publish(Night(4).save(tmp_path / "1.parquet"))
    night = Night(4)
    lose(night, 0.25)
    moved_to(night, dx=50_000)
    told = product.publish(night.save(tmp_path / "2.parquet"))
    assert {each.rule for each in told.result.findings} == {"null_geometry", "extent_shift"}, told.said
