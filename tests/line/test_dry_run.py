"""A dry run says exactly what the publish then does, and leaves everything as it was."""

import json

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shapely import Point

from estate import Estate, geoparquet
from merestone.render import text
from merestone.results.json_form import to_json as result_json

FIELDS = [
    {"name": "pid", "type": "string", "nullable": False},
    {"name": "owner", "type": "string", "nullable": False},
    {"name": "rank", "type": "integer"},
]
# What a dry run cannot know: it has no attempt, writes no version, and takes no time of writing.
UNKNOWN = {"expires", "status", "version", "run_id", "bytes_written", "confirm"}

rows = st.fixed_dictionaries({
    "owner": st.sampled_from(["a", "b", "b ", None]), "rank": st.sampled_from([1, 2, None]),
    "geometry": st.tuples(st.sampled_from([5.0, 5.1, 5.2, 5.2 + 4e-8, 5.3]), st.sampled_from([52.0, 52.5])).map(Point),
})  # fmt: skip
nights = st.lists(st.dictionaries(st.sampled_from([f"p{n}" for n in range(12)]), rows, min_size=1), min_size=2, max_size=4)


def save(path, night):
    return geoparquet(
        path,
        {
            "pid": list(night),
            "owner": pa.array([row["owner"] for row in night.values()], pa.string()),
            "rank": pa.array([row["rank"] for row in night.values()], pa.int64()),
            "geometry": [row["geometry"] for row in night.values()],
        },
    )


def told(result):
    return {name: value for name, value in result_json(result).items() if name not in UNKNOWN}


def wrote(made, done):
    """What is said to be written is what the version's files hold."""
    files = made.files()
    new = [each for each in files if each.version == made.version]
    assert (done.rows_written, done.files_written, done.files_carried) == (
        sum(each.rows for each in new),
        len(new),
        len(files) - len(new),
    )


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    states=nights,
    partition=st.sampled_from(["none", "kdtree", "column"]),
    tolerated=st.sampled_from([0, 0.5, 1]),
    published=st.sampled_from(["hold", "remove"]),
    target=st.sampled_from([2, 100]),
)
def test_over_random_nights(states, partition, tolerated, published, target, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dry")
    made = Estate(folder / "product", FIELDS, geometry_type="point")
    made.settings |= {"rejects": {"max_fraction": tolerated, "published": published}, "files": {"target_rows": target}}
    made.settings["partition"] = {
        "none": "none",
        "kdtree": {"by": "kdtree", "target_rows": 3},
        "column": {"by": "column", "column": "rank"},
    }[partition]
    for number, each in enumerate(states):
        source = save(folder / f"{number}.parquet", each)
        token, before = None, made.everything() if made.url.exists() else {}
        for _ in range(2):
            planned = made.publish(source, dry_run=True, confirm=token).result
            assert (made.everything() if made.url.exists() else {}) == before
            done = made.publish(source, confirm=token).result
            assert (planned.status, planned.version) == ("refused" if done.status == "refused" else "planned", planned.current)
            assert told(planned) == told(done)
            if done.status == "published":
                wrote(made, done)
            assert f"v{planned.current} would stay" in text.publish(planned) or done.status != "unchanged"
            before = made.everything()
            if done.confirm is None:
                break
            token = done.confirm  # what a guard stops is confirmed, and the dry run of that is exact as well


def test_the_report_counts_alike(estate, tmp_path):
    made = estate(FIELDS, geometry_type="point").by_place(3)
    state = {f"p{n}": {"owner": "a", "rank": n, "geometry": Point(5 + n / 100, 52)} for n in range(12)}
    made.publish(save(tmp_path / "1.parquet", state))
    del state["p3"]
    state["p5"]["owner"] = "b"
    source = save(tmp_path / "2.parquet", state)
    planned, done = made.publish(source, dry_run=True), made.publish(source)
    assert "v1 would change: 1 changed, 1 removed" in planned.said
    assert "v2 published: 1 changed, 1 removed" in done.said
    touched = {each.partition for each in made.files() if each.version == 2}
    assert f"rows       {planned.result.rows_written} of 11 to rewrite; changes lie in {len(touched)} of 4 partitions" in planned.said
    assert (
        (planned.doc["partitions_touched"], planned.doc["partitions"])
        == (len(touched), 4)
        == (done.doc["partitions_touched"], done.doc["partitions"])
    )
    assert (planned.result.files_written, planned.result.files_carried) == (done.result.files_written, done.result.files_carried)
    assert planned.result.files_written == len([each for each in made.files() if each.version == 2])


def test_a_dry_run_of_what_a_guard_stops_gives_no_token(estate, tmp_path):
    made = estate(FIELDS, geometry_type="point")
    state = {f"p{n}": {"owner": "a", "rank": n, "geometry": Point(5 + n / 100, 52)} for n in range(12)}
    made.publish(save(tmp_path / "1.parquet", state))
    source = save(tmp_path / "2.parquet", dict(list(state.items())[:5]))  # more than half is gone: too much even of few
    planned = made.publish(source, dry_run=True)
    assert (planned.status, planned.result.refused_by, planned.result.confirm) == ("refused", "guard", None)
    assert json.dumps(planned.doc["findings"]) == json.dumps(made.publish(source).doc["findings"])


def test_bytes_are_a_fair_estimate(estate, tmp_path):
    made = estate(FIELDS, geometry_type="point").by_place(1_000)
    state = {
        f"p{n}": {
            "owner": f"owner {n % 50}",
            "rank": n,
            "geometry": Point(5 + n * 1_234_567 % 10**7 / 1e7, 52 + n * 7_654_321 % 10**7 / 1e7),
        }
        for n in range(10_000)
    }
    made.publish(save(tmp_path / "1.parquet", state))
    state["p5"] = {**state["p5"], "owner": "b"}
    source = save(tmp_path / "2.parquet", state)
    planned, done = made.publish(source, dry_run=True).result, made.publish(source).result
    assert planned.bytes_written == pytest.approx(done.bytes_written, rel=0.5)
    assert planned.files_written == done.files_written == 1
