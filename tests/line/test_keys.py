"""Keys over the nights: derived ones, rules that change, features that get another key; the readers of every version go on reading."""

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point

from estate import geoparquet
from merestone.compare import step
from merestone.compare.apply import apply
from merestone.compare.diff import compared
from merestone.compare.terms import ComparisonSettings
from merestone.dataset import feed
from merestone.errors import UsageError
from merestone.inspect import browse
from merestone.line.rollback import roll_back
from merestone.storage.open import open_store

FIELDS = [
    {"name": "pid", "type": "integer"}, {"name": "code", "type": "string"}, {"name": "house", "type": "integer"}, {"name": "owner", "type": "string"},
]  # fmt: skip
COUNT = 40


def rows(**changes):
    """Features 1..COUNT: `pid` counts, `code` is text, `house` with `street` (outside the contract) tells them apart as well."""
    out = {
        n: {"pid": n, "code": f"c{n}", "house": n % 8, "street": f"s{n // 8}", "owner": f"o{n}", "geometry": Point(5 + n / 100, 52)}
        for n in range(1, COUNT + 1)
    }
    for key, row in changes.items():
        number = int(key[1:])
        out[number] = (
            {
                **out.get(
                    number,
                    {
                        "pid": number,
                        "code": f"c{number}",
                        "house": number,
                        "street": "new",
                        "owner": f"o{number}",
                        "geometry": Point(6, 52),
                    },
                ),
                **row,
            }
            if row is not None
            else None
        )
    return [row for row in out.values() if row is not None]


def save(path, given, *, without=("street",)):
    kinds = {"pid": pa.int64(), "house": pa.int64()}
    columns = {
        name: pa.array([row[name] for row in given], kinds.get(name, pa.string()))
        for name in ("pid", "code", "house", "street", "owner")
        if name not in without
    }
    return geoparquet(path, {**columns, "geometry": [row["geometry"] for row in given]})


def rule(product, key):
    product.settings["key"] = key


@pytest.fixture
def product(estate):
    return estate(FIELDS, key="pid", geometry_type="point")


@pytest.fixture
def derived(estate):
    return estate(FIELDS, key={"derive": "join", "from": ["street", "house"]}, geometry_type="point").by_place(10)


def deltas(night):
    return {name: count for name, count in night.result.delta.to_json().items() if count}


# --- derived keys ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["join", "hash"])
def test_a_derived_key_is_published_and_tells_features_apart(name, derived, tmp_path):
    derived.settings["key"]["derive"] = name
    assert derived.publish(save(tmp_path / "1.parquet", rows(), without=())).status == "published"
    table = derived.table()
    assert table.column_names[0] == "key"
    assert "street" not in table.column_names  # it makes the key, and is no part of the contract
    assert derived.manifest().key == {
        "columns": ["key"],
        "types": ["string"],
        "derive": name,
        "from": [{"name": "street", "type": "string"}, {"name": "house", "type": "integer"}],
    }
    again = derived.publish(save(tmp_path / "2.parquet", rows(n3={"owner": "x"}, n5=None)[::-1], without=()))
    assert deltas(again) == {"changed": 1, "removed": 1}
    if name == "join":
        assert set(again.classes) == {"s0/3", "s0/5"}
    assert derived.publish(save(tmp_path / "3.parquet", rows(n3={"owner": "x"}, n5=None), without=())).status == "unchanged"


def test_a_derived_key_follows_the_rules_for_keys(derived, tmp_path):
    found = derived.publish(save(tmp_path / "null.parquet", rows(n3={"street": None}), without=()))
    assert (found.status, found.result.findings[0].rule) == ("refused", "key_null")
    assert "join of street, house" in found.said
    found = derived.publish(save(tmp_path / "twice.parquet", rows(n3={"house": 4}), without=()))
    assert {rule for _, rule in found.rules("error")} == {"key_duplicate"}
    assert "s0/4" in found.said
    found = derived.publish(save(tmp_path / "missing.parquet", rows()))
    assert ("street", "missing") in found.rules("error")
    derived.terms["schema_fields"][2]["type"] = "number"
    found = derived.publish(save(tmp_path / "float.parquet", rows(), without=()))
    assert ("house", "key_type") in found.rules("error")
    assert derived.version is None


def test_a_delivery_is_compared_with_a_version_of_derived_keys(derived, tmp_path):
    derived.publish(save(tmp_path / "1.parquet", rows(), without=()))
    newer = save(tmp_path / "2.parquet", rows(n3={"owner": "x"}), without=())
    with compared(f"{derived.url}@1", str(newer), ComparisonSettings(with_keys=True)) as found:
        assert {name: keys for name, keys in (found.result.keys or {}).items() if keys} == {"changed": ("s0/3",)}


def test_a_dataset_of_derived_keys_can_be_mirrored(derived, tmp_path):
    derived.publish(save(tmp_path / "1.parquet", rows(), without=()))
    derived.publish(save(tmp_path / "2.parquet", rows(n3={"owner": "x"}), without=()))
    for target in (tmp_path / "mirror", tmp_path / "copy.gpkg"):
        for start in (0, 1):
            assert (
                apply(step.of_dataset(derived.dataset, start, start + 1), str(target)).set_digest == derived.manifest(start + 1).set_digest
            )
    assert step.Dataset(open_store(tmp_path / "mirror")).manifest().key == derived.manifest().key


# --- another rule --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["code", ["pid", "code"], {"derive": "join", "from": ["pid"]}, {"derive": "hash", "from": ["pid"]}])
def test_another_rule_is_refused_unless_a_migration_is_named(key, product, tmp_path):
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, key)
    with pytest.raises(UsageError, match="the published one is pid") as caught:
        product.publish(save(tmp_path / "2.parquet", rows()))
    assert "key_migration" in (caught.value.hint or "")
    assert product.version == 1


def test_a_rule_over_other_attributes_is_another_rule(derived, tmp_path):
    derived.publish(save(tmp_path / "1.parquet", rows(), without=()))
    for other in ({"derive": "hash", "from": ["street", "house"]}, {"derive": "join", "from": ["house", "street"]}):
        rule(derived, other)
        with pytest.raises(UsageError, match="the published one is join of street, house"):
            derived.publish(save(tmp_path / "2.parquet", rows(), without=()))


NEW = [
    "code",
    ["pid", "code"],
    ["house", "code"],
    {"derive": "join", "from": ["house", "code"]},
    {"derive": "hash", "from": ["pid", "code"]},
    "owner",
]


@pytest.mark.parametrize("partition", ["none", "place"])
@pytest.mark.parametrize("key", NEW)
def test_renumber_finds_features_again_by_their_content(key, partition, product, tmp_path):
    if partition == "place":
        product.by_place(10)
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, key)
    product.settings["key_migration"] = "renumber"
    night = product.publish(save(tmp_path / "2.parquet", rows(n3={"owner": "x"}, n77={}, n9=None)))
    assert night.status == "published"
    assert deltas(night) == {"added": COUNT, "removed": COUNT, "rekeyed": COUNT - 2}
    assert f"{COUNT - 2} of {COUNT} features were found again under another key" in night.heard
    names = [key] if isinstance(key, str) else ["key"] if isinstance(key, dict) else key
    assert product.manifest().key["columns"] == names
    table = product.table()
    assert table.select(names).to_pylist() == product.dataset.to_arrow(names).to_pylist()
    assert None not in [value for row in table.select(names).to_pylist() for value in row.values()]
    assert sorted(row["owner"] for row in table.to_pylist()) == sorted(["x", "o77", *(f"o{n}" for n in range(1, 41) if n not in (3, 9))])
    # The rule is the published one now: the setting has done its work, and does no harm.
    later = product.publish(save(tmp_path / "3.parquet", rows(n3={"owner": "x"}, n77={}, n9=None)))
    assert later.status == "unchanged"
    edited = product.publish(save(tmp_path / "4.parquet", rows(n3={"owner": "x"}, n77={}, n9=None, n5={"geometry": Point(5.05, 52.5)})))
    assert deltas(edited) == {"changed": 1}
    reads(product)


def reads(product):
    """Every way to read a dataset whose key rule changed: the feed, its file, the history of a feature, checksums."""
    for start, end in ((0, 2), (1, 2), (1, 3), (2, 3)):
        change = feed.changes(product.dataset, start, end, with_rows=True)
        assert change.key.num_rows == change.table.num_rows
        before, after = product.manifest(start).features if start else 0, product.manifest(end).features
        assert (change.before.num_rows if change.before is not None else 0) + change.counts()["added"] == change.table.num_rows
        assert before - change.counts()["removed"] + change.counts()["added"] == after
    old = browse.why(product.dataset, "3")
    assert old["versions"][-1]["class"] == "added"
    with pytest.raises(UsageError, match="the key changed"):
        step.of_dataset(product.dataset, 1, 2)


@pytest.mark.parametrize("partition", ["none", "place"])
def test_another_rule_that_makes_the_same_keys_changes_nothing_but_the_files(partition, product, tmp_path):
    if partition == "place":
        product.by_place(10)
    rule(product, "code")
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, {"derive": "join", "from": ["code"]})
    product.settings["key_migration"] = "renumber"
    noisy = rows(n3={"geometry": Point(5.03 + 4e-8, 52)}, n5={"owner": "x"})
    night = product.publish(save(tmp_path / "2.parquet", noisy))
    assert deltas(night) == {"changed": 1, "reprocessed": COUNT - 1}
    assert sorted(product.table().column("key").to_pylist()) == sorted(f"c{n}" for n in range(1, 41))
    assert product.publish(save(tmp_path / "3.parquet", noisy)).status == "unchanged"


def test_keys_that_mean_another_feature_now_are_changed_and_explained(product, tmp_path):
    """Both columns hold 1..40: each key is there before and after, for another feature."""
    product.terms["schema_fields"].append({"name": "nr", "type": "integer"})

    def some(path, **changes):
        given = rows(**changes)
        return geoparquet(
            path,
            {
                **{name: pa.array([row[name] for row in given]) for name in ("pid", "code", "house", "owner")},
                "nr": pa.array([41 - row["pid"] for row in given]),
                "geometry": [row["geometry"] for row in given],
            },
        )

    product.publish(some(tmp_path / "1.parquet"))
    rule(product, "nr")
    product.settings["key_migration"] = "renumber"
    stopped = product.publish(some(tmp_path / "2.parquet", **{f"n{n}": {"owner": "x"} for n in range(1, 11)}))
    assert stopped.result.refused_by == "guard"
    assert "50 % changed" in stopped.said  # ten contents are gone, ten are new, under twenty keys
    night = product.publish(some(tmp_path / "3.parquet", n1={"owner": "x"}))
    assert deltas(night) == {"changed": COUNT}
    assert {row["nr"]: row["owner"] for row in product.table().to_pylist()} == {41 - n: "x" if n == 1 else f"o{n}" for n in range(1, 41)}


def test_keys_of_both_rules_stand_in_one_feed(product, tmp_path):
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, "code")
    product.settings["key_migration"] = "renumber"
    product.publish(save(tmp_path / "2.parquet", rows()))
    change = feed.changes(product.dataset, 1, 2)
    kinds = change.table.column("class").to_pylist()
    told = {(kind, row["code"], row["pid"]) for kind, row in zip(kinds, change.key.to_pylist(), strict=True)}
    assert told == {("removed", None, n) for n in range(1, 41)} | {("added", f"c{n}", None) for n in range(1, 41)}
    assert change.counts()["rekeyed"] == COUNT


def test_what_the_content_does_not_explain_counts_for_the_guard(product, tmp_path):
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, "code")
    product.settings["key_migration"] = "renumber"
    product.settings["guard"] = {"max_removed_fraction": 0.15, "min_key_survival": 0.85, "min_touched": 0}
    few = {f"n{n}": {"owner": "x"} for n in range(1, 4)}
    assert product.publish(save(tmp_path / "few.parquet", rows(**few)), dry_run=True).status == "planned"
    many = {f"n{n}": {"owner": "x"} for n in range(1, 21)}
    stopped = product.publish(save(tmp_path / "many.parquet", rows(**many)))
    assert stopped.result.refused_by == "guard"
    assert {each.rule for each in stopped.result.findings if each.surface == "guard"} == {"changed", "removed", "key_survival"}
    assert "50 % removed" in stopped.said
    assert product.version == 1


def test_nothing_is_rejected_while_keys_change(product, tmp_path):
    product.terms["schema_fields"][3]["nullable"] = False
    product.settings["rejects"] = {"max_fraction": 0.5}
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, "code")
    product.settings["key_migration"] = "renumber"
    night = product.publish(save(tmp_path / "2.parquet", rows(n3={"owner": None})))
    assert (night.status, night.result.refused_by) == ("refused", "contract")
    assert ("code", "key_migration") in night.rules("error")


def test_the_type_of_a_key_changes_with_a_migration_only(product, tmp_path):
    product.terms["schema_fields"] = product.terms["schema_fields"][1:]
    rule(product, "pid")  # outside the contract: its type is the delivered one
    product.publish(save(tmp_path / "1.parquet", rows()))
    given = rows()
    texts = geoparquet(
        tmp_path / "2.parquet",
        {
            "pid": pa.array([f"x{row['pid']}" for row in given]),
            "code": pa.array([row["code"] for row in given]),
            "house": pa.array([row["house"] for row in given]),
            "owner": pa.array([row["owner"] for row in given]),
            "geometry": [row["geometry"] for row in given],
        },
    )
    assert ("pid", "key_type") in product.publish(texts).rules("error")
    product.settings["key_migration"] = "renumber"
    night = product.publish(texts)
    assert deltas(night) == {"added": COUNT, "removed": COUNT, "rekeyed": COUNT}
    assert {type(row["pid"]) for row in product.table().to_pylist()} == {str}
    change = feed.changes(product.dataset, 1, 2)
    assert set(change.key.column("pid").to_pylist()) == {*(f"x{n}" for n in range(1, 41)), *(str(n) for n in range(1, 41))}


def test_going_back_behind_a_migration_brings_the_old_keys_back(product, tmp_path):
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, "code")
    product.settings["key_migration"] = "renumber"
    product.publish(save(tmp_path / "2.parquet", rows(n3={"owner": "x"})))
    roll_back(product.dataset, to=1, reason="test")
    assert product.manifest().key["columns"] == ["pid"]
    assert feed.changes(product.dataset, 1, 3).table.num_rows == 0
    again = product.publish(save(tmp_path / "4.parquet", rows(n4={"owner": "x"})))
    assert deltas(again) == {"added": COUNT, "removed": COUNT, "rekeyed": COUNT - 1}


# --- a table of old and new keys -------------------------------------------------------------------------------------------------------------


def pairs(path, lines, header="old,new"):
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_pairs_features_that_changed_as_well(ending, product, tmp_path):
    product.settings["guard"] = {"min_touched": 0}
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, "code")
    table = tmp_path / f"keys.{ending}"
    if ending == "csv":
        pairs(table, [f"{n},c{n}" for n in range(1, 41)])
    else:
        pq.write_table(pa.table({"old": list(range(1, 41)), "new": [f"c{n}" for n in range(1, 41)]}), table)
    product.settings["key_migration"] = str(table)
    night = product.publish(save(tmp_path / "2.parquet", rows(**{f"n{n}": {"owner": "x"} for n in range(1, 9)})))
    assert night.status == "published"  # 8 of 40 changed: 20 %, at the limit
    assert "40 of 40 features were found again under another key, 8 of them with other content" in night.heard
    rule(product, "pid")
    product.settings["key_migration"] = str(pairs(tmp_path / "back.csv", [f"c{n},{n}" for n in range(1, 41)]))
    stopped = product.publish(save(tmp_path / "3.parquet", rows(**{f"n{n}": {"owner": "y"} for n in range(1, 10)})))
    assert stopped.result.refused_by == "guard"
    assert "22 % changed" in stopped.said


def test_a_table_also_serves_keys_that_were_handed_out_anew_under_one_rule(product, tmp_path):
    product.publish(save(tmp_path / "1.parquet", rows()))
    anew = [{**row, "pid": row["pid"] + 1000} for row in rows()]
    stopped = product.publish(save(tmp_path / "2.parquet", anew))
    assert stopped.result.refused_by == "guard"
    product.settings["key_migration"] = str(pairs(tmp_path / "keys.csv", [f"{n},{n + 1000}" for n in range(1, 41)]))
    night = product.publish(save(tmp_path / "2.parquet", anew))
    assert deltas(night) == {"added": COUNT, "removed": COUNT, "rekeyed": COUNT}
    assert product.publish(save(tmp_path / "2.parquet", anew)).status == "unchanged"
    # The next time keys are handed out anew, the old table explains nothing.
    assert product.publish(save(tmp_path / "3.parquet", [{**row, "pid": row["pid"] + 2000} for row in rows()])).result.refused_by == "guard"


def test_renumber_alone_lets_nothing_through_under_one_rule(product, tmp_path):
    product.settings["key_migration"] = "renumber"
    product.publish(save(tmp_path / "1.parquet", rows()))
    stopped = product.publish(save(tmp_path / "2.parquet", [{**row, "pid": row["pid"] + 1000} for row in rows()]))
    assert stopped.result.refused_by == "guard"


def test_composite_keys_have_a_column_each(product, tmp_path):
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, ["pid", "code"])
    product.settings["key_migration"] = str(pairs(tmp_path / "keys.csv", [f"{n},{n},c{n}" for n in range(1, 41)], "old,new.pid,new.code"))
    night = product.publish(save(tmp_path / "2.parquet", rows()))
    assert "40 of 40 features" in night.heard


@pytest.mark.parametrize(("lines", "header", "words"), [
    (["1,c1", "1,c2"], "old,new", "1 is repeated among the old keys"),
    (["1,c1", "2,c1"], "old,new", "c1 is repeated among the new keys"),
    (["one,c1"], "old,new", "old holds values that are not integer"),
    (["1,c1"], "previous,new", "no column old"),
    (["1,c1", ",c2"], "old,new", "old is empty in 1 rows (row 2 first)"),
])  # fmt: skip
def test_a_bad_table_is_told(lines, header, words, product, tmp_path):
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, "code")
    product.settings["key_migration"] = str(pairs(tmp_path / "keys.csv", lines, header))
    with pytest.raises(UsageError) as caught:
        product.publish(save(tmp_path / "2.parquet", rows()))
    assert (caught.value.field, words in caught.value.message) == ("key_migration", True), caught.value.message
    product.settings["key_migration"] = str(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="cannot be read"):
        product.publish(save(tmp_path / "2.parquet", rows()))


def test_the_record_says_which_migration(product, tmp_path):
    product.publish(save(tmp_path / "1.parquet", rows()))
    rule(product, "code")
    product.settings["key_migration"] = "renumber"
    product.publish(save(tmp_path / "2.parquet", rows()))
    record = product.records()[-1]
    assert record["settings"]["key_migration"] == "renumber"
    assert "key_migration" in json.dumps(record["findings"])


# --- keys that are none -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerated", [0, 0.9])
@pytest.mark.parametrize(
    ("keys", "found"),
    [
        (pa.array([1.0, 12.5, 3.0]), {"key_type": [2], "type": [2]}),
        (pa.array([1.0, None, 3.0]), {"key_null": [2]}),
        (pa.array([1.0, math.nan, 3.5]), {"key_null": [2], "key_type": [3], "type": [3]}),
        (pa.array([1, 2**64 - 1, 3], pa.uint64()), {"key_type": [2], "type": [2]}),
        (pa.array([2.0**53, 2.0**53 + 2, 2.0**63]), {"key_type": [1, 2, 3], "type": [1, 2, 3]}),
    ],
    ids=["no whole number", "null", "both", "beyond 64 bits", "floats that may be others"],
)
def test_a_key_that_cannot_be_read_is_not_called_null(estate, tmp_path, keys, found, tolerated):
    """Whatever share of rows may be rejected: a row without a key is not one of them."""
    product = estate([{**FIELDS[0], "nullable": True}], key="pid", geometry_type="point")
    product.settings["rejects"] = {"max_fraction": tolerated}
    night = product.publish(geoparquet(tmp_path / "1.parquet", {"pid": keys, "geometry": [Point(5, 52 + n / 10) for n in range(3)]}))
    assert (night.status, night.result.refused_by) == ("refused", "contract")
    rows_of = {each.rule: [sample.row for sample in each.features] for each in night.result.findings if each.severity == "error"}
    assert rows_of == found


# --- keys that are read alike ----------------------------------------------------------------------------------------------------------------


def coded(**codes):
    return [{**row, "code": codes.get(row["code"], row["code"])} for row in rows()]


def test_a_new_key_that_is_read_as_a_published_one_is_named(product, tmp_path):
    rule(product, "code")
    product.publish(save(tmp_path / "1.parquet", coded()))
    beside = [*coded(), {**rows()[0], "code": "C 7"}, {**rows()[0], "code": "C5 "}]
    night = product.publish(save(tmp_path / "2.parquet", beside))
    assert (night.status, deltas(night)) == ("published", {"added": 2})  # two features of their own: only a person can say
    assert "'c5' / 'C5 '" in night.heard
    assert "C 7" not in night.said
    # The next night they are published, and are said no more.
    assert ("code", "key_twin") not in product.publish(save(tmp_path / "3.parquet", [*beside, {**rows()[0], "code": "other"}])).rules()


def test_twins_of_a_first_delivery_are_named_however_large_it_is(product, tmp_path):
    rule(product, "code")
    many = [
        {**rows()[0], "code": f"k{n}", "geometry": Point(5 + n * 1_234_567 % 10**7 / 1e7, 52 + n * 7_654_321 % 10**7 / 1e7)}
        for n in range(25_000)
    ]
    many[3]["code"] = "K24999"
    night = product.publish(save(tmp_path / "1.parquet", many))
    assert ("code", "key_twin") in night.rules("warning"), night.said
    assert "'K24999' / 'k24999'" in night.heard


def test_a_key_that_was_removed_long_ago_has_no_twin(product, tmp_path):
    rule(product, "code")
    product.publish(save(tmp_path / "1.parquet", coded()))
    product.publish(save(tmp_path / "2.parquet", coded()[:-1]))
    night = product.publish(save(tmp_path / "3.parquet", coded(c40="C40")))
    assert (deltas(night), ("code", "key_twin") in night.rules()) == ({"added": 1}, False)


def test_numbers_have_no_twins(product, tmp_path):
    product.publish(save(tmp_path / "1.parquet", rows()))
    assert not {rule for _, rule in product.publish(save(tmp_path / "2.parquet", rows(n77={}))).rules()} & {"key_twin"}
