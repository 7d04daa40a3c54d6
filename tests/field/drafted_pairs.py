"""Every two consecutive exports of a public dataset: `init NEW --previous OLD`, then `publish` of both under that draft as it came.

Not here: what is asserted of it (`test_drafted_pairs`). `python -m field.drafted_pairs DIR` (from `tests`) prints the table for `DIR/data`.

The draft is not edited, but for what it asks a person: which way round the axes are, where the numbers do not show it, and how many rows may be
rejected, where more are than a draft allows. Where no column is a clean key in the newer export, `init` refuses; the steward's key is then
named, to see that `publish` refuses the rows. What changed is judged a second time by `judge`, which uses nothing of Merestone.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ruamel.yaml import YAML

import merestone as ms
from field.deliveries import read
from field.judge import Judge
from merestone.errors import UsageError

LIMIT, FEW, FEW_LIMIT = 0.2, 20, 0.5  # `guard.max_changed_fraction` and `guard.min_touched`, as by default


@dataclass(frozen=True)
class Pair:
    """Two exports and what a steward would say: the key, and which export breaks any contract on it."""

    older: str
    newer: str
    key: str
    unclean: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.older} > {self.newer}"


@dataclass
class Outcome:
    """What came of a pair. `counts` and `judged` are added, removed, changed, suppressed of the newer night, ours and the judge's."""

    pair: Pair
    key: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)
    nights: list[str] = field(default_factory=list)
    counts: tuple[int, ...] | None = None
    judged: tuple[int, ...] | None = None
    share: float | None = None
    rest: tuple[dict, dict] | None = None
    said: str = ""


def _chain(key: str, *paths: str, unclean: tuple[str, ...] = ()) -> Iterator[Pair]:
    for older, newer in pairwise(paths):
        yield Pair(older, newer, key, tuple(each for each in unclean if each in {older, newer}))


_LINES = ("2019-04-02/{}.gz", "2019-06-11/{}.gz", "2026-03-03/{}.gz", "2026-06-01/{}", "2026-07-07/{}", "2026-08-17/{}")
LINES = [f"cam_centerlines/{each.format('TRANS_Centerlines.geojson')}" for each in _LINES]
HYDRANTS = [
    f"cam_hydrants/{each}/INFRA_Hydrants.geojson{'.gz' * each.startswith('2018')}"
    for each in ("2018-07-02", "2018-12-20", "2026-04-07", "2026-07-07")
]
HYDRANTS_GDB = [f"cam_hydrants/{each}/INFRA_Hydrants.gdb" for each in ("2026-04-07", "2026-07-07")]
LIGHTS = [f"cam_streetlights/{each}/INFRA_StreetLights.geojson.gz" for each in ("2015-04-13", "2017-07-31", "2023-03-15")]
PARCELS = [f"cam_parcels/FY{each}/ASSESSING_ParcelsFY{each}.topojson" for each in (2013, 2014)]

KOMMUNER = ("2020/Kommuner-medium", "2024/Kommuner-M")
COMMUNES = [f"fr_communes62/{each}/communes-62-pas-de-calais.geojson" for each in ("2016-10-28", "2017-02-06", "2017-09-05", "2018-08-01")]

PAIRS = (
    *_chain("ID", *LINES, unclean=(LINES[1], LINES[3])),
    *_chain("HYDRANT_ID", *HYDRANTS, unclean=tuple(HYDRANTS)),
    *_chain("HYDRANT_ID", *HYDRANTS_GDB, unclean=tuple(HYDRANTS_GDB)),
    *_chain("PoleID", *LIGHTS, unclean=tuple(LIGHTS[:2])),
    *_chain("ML", *PARCELS, unclean=tuple(PARCELS)),
    *_chain("OKOOD", *(f"ee_ehak/{each}/omavalitsus.geojson" for each in ("2017-10-03", "2017-11-16"))),
    *_chain("AKOOD", *(f"ee_ehak/{each}/asustusyksus.topojson.gz" for each in ("2018-08-06", "2018-09-30"))),
    # The key was a number and is text: the older export is refused under any contract of the newer one.
    *_chain("kommunenummer", *(f"no_kommuner/{each}.geojson" for each in KOMMUNER), unclean=(f"no_kommuner/{KOMMUNER[0]}.geojson",)),
    *_chain("kommunenummer", *(f"no_kommuner/{each}.gpkg" for each in KOMMUNER), unclean=(f"no_kommuner/{KOMMUNER[0]}.gpkg",)),
    *_chain("iso", *(f"at_gemeinden/{each}/gemeinden_999_geo.geojson" for each in (2016, 2017, 2021))),
    # Shapes generalised so far that they lose half of their vertices are a breach, which a person agrees to in the contract.
    *_chain("code", *COMMUNES[:2], unclean=(COMMUNES[1],)),
    *_chain("code", *COMMUNES[1:]),
    *_chain("geonameid", *(f"geonames_cities5000/{each}/cities5000.parquet" for each in ("v1.6.0", "v2.0.0", "v3.0.2"))),
    *_chain("id", *(f"db_stations/{each}/stations.fgb" for each in ("v4.2.1", "v5.0.2"))),
    *_chain("name", *(f"ne_lowres/{each}/naturalearth_lowres.shp" for each in ("1-gp0.3.0", "2-gp0.7.0", "3-gp0.12.2"))),
    *_chain("name", *(f"ne_lowres/{each}/naturalearth_cities.shp" for each in ("1-gp0.3.0", "2-gp0.7.0", "3-gp0.12.2"))),
    *_chain("t50_fid", *(f"nz_topo/{each}/nz-pa-points-topo-150k.gpkg" for each in ("r1-2019-06-11", "r2-2019-06-20"))),
    *_chain("id", *(f"osm_community/{each}/completeFeatureCollection.geojson" for each in ("1-v5.9.3", "2-v5.10.0"))),
)  # fmt: skip


def run(pair: Pair, data: Path, folder: Path) -> Outcome:
    """Draft from the pair and publish both."""
    out = Outcome(pair)
    older, newer = data / pair.older, data / pair.newer
    try:
        made = ms.draft(newer, previous=older, owner="steward@example.org", out=folder)
    except UsageError as refused:
        out.asked.append("key")
        out.said = refused.message
        made = ms.draft(newer, previous=older, key=[pair.key], owner="steward@example.org", out=folder)
    contract, settings = Path(made.contract), Path(made.publication)
    out.said += "\n".join(made.notes)
    answer(out, contract, settings)
    terms = yaml(contract)
    out.key = tuple([terms["key"]] if isinstance(terms["key"], str) else terms["key"])
    out.volatile = tuple(each["name"] for each in terms["schema_fields"] if each.get("volatile"))
    judge = Judge(terms, out.key[0])
    for path, delivery in ((pair.older, older), (pair.newer, newer)):
        night = ms.publish(settings, source=delivery)
        if night.refused_by == "contract":
            rules = sorted({each.rule for each in night.findings if each.severity == "error"})
            out.nights.append(f"1 {', '.join(rules)}")
            continue
        before = len(judge.state)
        expected = judge.judge(read(delivery))
        delta = expected["delta"]
        touched = delta["added"] + delta["changed"] + delta["removed"] - delta["rekeyed"]
        share = touched / before if before else None
        stopped = night.refused_by == "guard"
        out.nights.append("1 guard" if stopped else f"0 {'first' if not before else night.status}")
        if stopped:
            night = ms.publish(settings, source=delivery, confirm=night.confirm)
        ours = night.delta.to_json()
        if path == pair.newer:
            names = ("added", "removed", "changed", "suppressed")
            out.share, out.counts, out.judged = share, tuple(ours[each] for each in names), tuple(delta[each] for each in names)
        said = {name: getattr(night, name) for name in ("delivered", "rejected", "held", "features", "unchanged")}
        out.rest = {**said, "delta": {name: ours[name] for name in delta}}, expected
        assert out.rest[0] == out.rest[1], f"{pair}, {path}: {out.rest}"
        assert stopped == (share is not None and share > (FEW_LIMIT if touched < FEW else LIMIT)), f"{pair}: {share}, {out.nights}"
    return out


def answer(out: Outcome, contract: Path, settings: Path) -> None:
    """Answer what the draft asks a person, and nothing else."""
    text = contract.read_text(encoding="utf-8")
    asked = re.search(r"^# (extent: \[.*\]) # as delivered", text, re.MULTILINE)
    if asked is not None:
        out.asked.append("extent")
        contract.write_text(f"{text}{asked[1]}\n", encoding="utf-8")
    text = settings.read_text(encoding="utf-8")
    if "is the data wrong, or the contract?" in text:
        out.asked.append("rejects")
        settings.write_text(text.replace("max_fraction: 0.05", "max_fraction: 0.1"), encoding="utf-8")


def yaml(path: Path) -> dict:
    """A document as plain values."""
    return YAML(typ="safe", pure=True).load(path)


def row(out: Outcome) -> str:
    """One line of the table."""
    name = f"{out.pair.older.split('/')[0]} {version(out.pair.older)} > {version(out.pair.newer)}"
    counts = [
        ("", "") if out.counts is None else (ours, judged)
        for ours, judged in zip(out.counts or [""] * 4, out.judged or [""] * 4, strict=True)
    ]
    share = "" if out.share is None else f"{out.share:.1%}".replace("%", " %")
    cells = [
        name,
        ", ".join(out.key) if "key" not in out.asked else "",
        out.pair.key,
        ", ".join(out.volatile),
        ", ".join(out.asked),
        *(f"{ours}" if ours == judged else f"{ours} / {judged}" for ours, judged in counts),
        share,
        "; ".join(out.nights),
    ]
    return f"| {' | '.join(cells)} |"


def version(path: str) -> str:
    """The folder of a version, and the kind of file where a dataset has several."""
    _, folder, *file = path.split("/")
    return f"{folder} {Path(file[0].removesuffix('.gz')).stem.split('_')[-1]}{Path(file[0].removesuffix('.gz')).suffix}"


HEAD = (
    "| pair | key drafted | steward's key | volatile | asked | added | removed | changed | suppressed | share | exit of each night |\n"
    "|---|---|---|---|---|--:|--:|--:|--:|--:|---|"
)


def main(shared: str, *only: str) -> None:
    """Print the table."""
    sys.stdout.write(f"{HEAD}\n")
    for pair in PAIRS:
        if not only or any(each in str(pair) for each in only):
            with tempfile.TemporaryDirectory() as folder:
                sys.stdout.write(row(run(pair, Path(shared) / "data", Path(folder))) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
