"""What a person types for a dataset."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely import Point

import merestone
from estate import save
from merestone.errors import UsageError
from merestone.identity.key import feature_ids, key_bytes
from merestone.inspect.browse import Address, canonical_key, open_dataset, parse_address, whole

FIELDS = [{"name": "pid", "type": "string", "nullable": False}]


@pytest.mark.parametrize(
    ("typed", "where", "version"),
    [
        ("parcels.yaml", "parcels.yaml", None),
        ("parcels.yaml@2", "parcels.yaml", 2),
        ("./a/b@12", "./a/b", 12),
        ("a@v3", "a", 3),
        ("a@b", "a@b", None),
        ("a@0", "a", 0),
        ("@2", "@2", None),
        ("a@1@2", "a@1", 2),
        ("file:///a@2", "file:///a", 2),
        ("a@-1", "a@-1", None),
        ("a@2.5", "a@2.5", None),
        ("a@02", "a@02", None),
    ],
)
def test_a_version_is_what_follows_the_last_at(typed, where, version, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert parse_address(typed) == Address(where, version)


def test_a_path_that_exists_is_taken_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a@2").mkdir()
    assert parse_address("a@2") == Address("a@2", None)
    assert parse_address("a@2@1") == Address("a@2", 1)


def test_python_opens_a_folder_or_a_publication_file_and_reads_any_version(estate, tmp_path):
    product = estate(FIELDS)
    product.publish(save([{"pid": "a", "geometry": Point(5, 52)}], tmp_path / "one.gpkg"))
    product.agreed().publish(save([{"pid": "a", "geometry": Point(5, 52)}, {"pid": "b", "geometry": Point(6, 53)}], tmp_path / "two.gpkg"))
    for place in (product.url, str(product.url), product.folder / "product.yaml", product.url.as_uri()):
        dataset = merestone.open(place)
        assert dataset.versions() == [1, 2]
        assert sorted(dataset.to_geodataframe()["pid"]) == ["a", "b"]
        assert list(dataset.to_geodataframe(bbox=(5.5, 52, 7, 54))["pid"]) == ["b"]
        assert list(dataset.to_geodataframe(version=1)["pid"]) == ["a"]
    with pytest.raises(UsageError) as fault:
        open_dataset(f"{product.url}@1")
    assert "version=1" in fault.value.hint


def test_commands_about_all_versions_take_none():
    with pytest.raises(UsageError, match="names a version"):
        whole("parcels@2")


@given(st.text(min_size=1, max_size=12))
def test_the_text_of_a_key_leads_back_to_its_bytes(text):
    rule = {"columns": ["pid"], "types": ["string"]}
    table = pa.table({"pid": [text]})
    (ident,) = feature_ids(table, ["pid"]).to_pylist()
    canonical, _ = key_bytes(table, ["pid"])
    if "\\u00" not in text and text != '""':  # such a text looks like an escape: ids of both are equal, and the escape is meant
        assert canonical_key("parcels", rule, ident) == canonical[0].as_py()
