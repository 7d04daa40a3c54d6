"""`apply`: what it prints, and how it ends."""

import pytest


@pytest.fixture
def copy(published, merestone, tmp_path):
    path = tmp_path / "copy.gpkg"
    assert merestone("read", f"{published.file}@1", "--out", path).code == 0
    return path


def test_the_last_step_is_applied_by_default_and_proved(published, copy, merestone):
    doc = merestone("apply", published.file, "--onto", copy, "--json").doc
    digest = published.manifest(2).set_digest
    assert (doc["status"], doc["from"], doc["to"], doc["features"], doc["set_digest"], doc["expected"]) == (
        "applied",
        1,
        2,
        40,
        digest,
        digest,
    )
    assert {name: count for name, count in doc["delta"].items() if count} == {"added": 1, "changed": 2, "removed": 1}
    assert merestone("apply", published.file, "--onto", copy).out.startswith(f"{copy} is product v2 already")


def test_words_say_what_was_proved(published, copy, merestone):
    said = merestone("apply", published.file, "--from", 1, "--to", 2, "--onto", copy).out
    assert said.startswith(f"product v1 to v2 applied to {copy}: 1 added, 2 changed, 1 removed")
    assert f"proved     40 features, set digest {published.manifest(2).set_digest} as in product v2" in said


def test_a_feed_file_needs_no_dataset(published, copy, merestone, tmp_path):
    feed, part = tmp_path / "feed.parquet", tmp_path / "part.parquet"
    merestone("changes", published.file, "--out", feed)
    merestone("changes", published.file, "--out", part, "--where", "rank > 3")
    assert merestone("apply", part, "--onto", copy, "--json").code == 2
    assert merestone("apply", feed, "--onto", copy, "--from", 1, "--json").code == 2
    doc = merestone("apply", feed, "--onto", copy, "--json").doc
    assert (doc["status"], doc["set_digest"]) == ("applied", published.manifest(2).set_digest)


def test_a_dataset_gets_a_version_of_its_own(published, merestone, tmp_path):
    mirror = tmp_path / "mirror"
    assert merestone("apply", published.url, "--from", 0, "--onto", mirror, "--json").doc["version"] == 1
    assert merestone("verify", mirror).code == 0
    assert "applied" not in merestone("apply", published.url, "--from", 0, "--onto", mirror).out


def test_a_copy_that_is_elsewhere_is_refused_with_1(published, copy, merestone):
    before = copy.read_bytes()
    ended = merestone("apply", published.file, "--from", 0, "--onto", copy, "--json")
    assert (ended.code, ended.doc["status"], ended.doc["set_digest"]) == (1, "refused", published.manifest(1).set_digest)
    said = merestone("apply", published.file, "--from", 0, "--onto", copy).out
    assert "does NOT apply" in said
    assert "--from" in said
    assert copy.read_bytes() == before


@pytest.mark.parametrize(("arguments", "code"), [
    ([], 2), (["--onto", "x.docx"], 2), (["--onto", "x.gpkg", "--from", "7"], 2), (["--onto", "x.gpkg", "--from", "2", "--to", "1"], 2),
])  # fmt: skip
def test_what_cannot_be_is_wrong_usage(arguments, code, published, merestone):
    assert merestone("apply", published.file, *arguments, "--json").code == code
