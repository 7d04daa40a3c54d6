"""One text means one place, at every door: publication keys, the command line, stores."""

from __future__ import annotations

import json
import os

import pytest

from merestone.contract.files import read_contract
from merestone.errors import UsageError
from merestone.inspect.browse import open_dataset
from merestone.publication.reader import PLACES, place_of, read_publication, with_source
from merestone.source.open import open_source
from merestone.source.port import SourceSpec
from merestone.storage.open import open_store
from merestone.storage.place import local_path, parse_place

ENVIRON = {"HOME": "/home/ann", "DEST": "/mnt/out", "NAME": "a b", "PCT": "a%20b", "EMPTY": "", "URL": "file:///x/a%20b", "NEST": "${HOME}"}

# Text, and the path that it means where the base is /base.
MEANT = [
    ("x", "/base/x"),
    ("./x", "/base/x"),
    ("x/", "/base/x"),
    ("../x", "/x"),
    ("a/../x", "/base/x"),
    ("/x", "/x"),
    ("//x/y", "/x/y"),
    ("/x/../../y", "/y"),
    (" x ", "/base/ x "),
    ("a b", "/base/a b"),
    ("a%20b", "/base/a%20b"),
    ("a?b#c", "/base/a?b#c"),
    ("é", "/base/é"),
    ("12:30.gpkg", "/base/12:30.gpkg"),
    ("data:2024.gpkg", "/base/data:2024.gpkg"),
    ("v1.2.0-crs:EPSG:28992-res:10cm", "/base/v1.2.0-crs:EPSG:28992-res:10cm"),
    ("a:b", "/base/a:b"),
    ("-", "/base/-"),
    ("~", "/home/ann"),
    ("~/x", "/home/ann/x"),
    ("~ann/x", "/base/~ann/x"),
    ("a/~", "/base/a/~"),
    ("$DEST", "/base/$DEST"),
    ("${DEST}", "/mnt/out"),
    ("${DEST}/x", "/mnt/out/x"),
    ("x/${NAME}", "/base/x/a b"),
    ("x/${PCT}", "/base/x/a%20b"),
    ("${URL}", "/x/a b"),
    ("file:///x/${PCT}", "/x/a b"),
    ("file:///x/a%20b", "/x/a b"),
    ("file:/x/a%20b", "/x/a b"),
    ("file://localhost/x/a%20b", "/x/a b"),
    ("FILE://LOCALHOST/x", "/x"),
    ("file:///x/", "/x"),
    ("file:///x/../y", "/y"),
    ("file:///x%3Fy%23z%25", "/x?y#z%"),
    ("file:///x/%C3%A9", "/x/é"),
    ("file:///~/x", "/~/x"),
    ("file:///a@b/c:d", "/a@b/c:d"),
]

# Text that means no place, and what is said of it.
REFUSED = [
    ("", "is blank"),
    ("  ", "is blank"),
    ("a\0b", "control character"),
    ("a\nb", "control character"),
    ("a\x1b[31mb", "control character"),
    ("a\x7fb", "control character"),
    ("a\x9bb", "control character"),
    ("a\udcffb", "not UTF-8"),
    ("C:\\data\\x", "Windows path"),
    ("C:/data/x", "Windows path"),
    ("\\\\server\\share", "Windows path"),
    ("published\\x", "Windows path"),
    ("file:///C:/x", "Windows path"),
    ("file:///x%5Cy", "Windows path"),
    ("${UNSET}", "UNSET, which is not set"),
    ("x/${EMPTY}", "EMPTY, which is empty"),
    ("${}", "names no environment variable"),
    ("${DEST", "names no environment variable"),
    ("${1}", "names no environment variable"),
    ("${NEST}/x", r"holds \$\{ once its variables are replaced"),
    ("file:x", "without an absolute path"),
    ("file:", "without an absolute path"),
    ("file://", "without a path"),
    ("file://host/x", "another machine"),
    ("file://published/x", "another machine"),
    ("file://127.0.0.1/x", "another machine"),
    ("file://user:hunter2@host/x", "another machine"),
    ("file://user@/x", "another machine"),
    ("file:////server/share", "network share"),
    ("file:///x?y", "would end its path"),
    ("file:///x#y", "would end its path"),
    ("file:///x%", "two hex digits"),
    ("file:///x%zz", "two hex digits"),
    ("file:///x%2Fy", "cannot hold a /"),
    ("file:///x%00y", "control character"),
    ("file:///x%0Ay", "control character"),
    ("file:///x%FF", "decode to UTF-8"),
    ("https:/example.org/x", "begins with https: and not with https://"),
    ("s3:bucket/x", "begins with s3: and not with s3://"),
    ("s3://", "names no host or bucket"),
    ("s3:///x", "names no host or bucket"),
    ("/vsicurl/https://example.org/x", "virtual file systems"),
    ("/vsizip/x.zip", "virtual file systems"),
]

# Text that is understood and has no store or reader in this version.
ELSEWHERE = [
    "s3://bucket/prefix",
    "S3://bucket",
    "gs://bucket/x",
    "az://container/x",
    "https://example.org/x.gpkg",
    "http://localhost:8080/x",
    "ftp://example.org/x",
    "postgresql://user:hunter2@host/db?sslmode=require",
    "s3://AKIA:hunter2@bucket/x",
    "https://example.org/x?sig=hunter2&X-Amz-Signature=hunter2",
    "PG:host=db user=ann password=hunter2",
    "PG:host=db password='hunter2 a'",
    "MSSQL:server=db;UID=ann;PWD=hunter2",
    "OCI:ann/hunter2@db",
    "x-unknown://a/b",
]


@pytest.mark.parametrize(("text", "path"), MEANT)
def test_a_text_means_one_path_of_this_machine(text, path):
    place = parse_place(text, base="/base", environ=ENVIRON)
    assert (place.scheme, place.path, place.shown) == ("file", path, path)
    assert parse_place(place.path, environ=ENVIRON) == place, "parsed again it means something else"


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_a_text_that_means_no_place_is_wrong_usage(text, why):
    with pytest.raises(UsageError, match=why) as caught:
        parse_place(text, base="/base", field="destination", environ=ENVIRON)
    fault = caught.value
    assert (fault.exit_code, fault.field) == (2, "destination")
    assert fault.hint
    assert fault.message.isprintable()
    assert "hunter2" not in fault.message


@pytest.mark.parametrize("text", ELSEWHERE)
def test_a_place_elsewhere_is_understood_and_shows_no_secret(text):
    place = parse_place(text)
    assert not place.is_local
    assert place.scheme == text.split(":")[0].lower()
    assert "hunter2" not in place.shown
    assert "hunter2" not in f"{place!r} {place}"
    with pytest.raises(UsageError, match="not in this version") as caught:
        local_path(text)
    assert "hunter2" not in f"{caught.value.message} {caught.value.field} {caught.value.hint}"


def test_the_parts_of_a_url():
    place = parse_place("s3://bucket/a%20b/c/", environ={})
    assert (place.scheme, place.authority, place.path, place.query) == ("s3", "bucket", "a b/c", "")
    place = parse_place("https://u:p@host:8443/x?sig=s#f", environ={})
    assert (place.authority, place.path, place.query, place.shown) == ("u:p@host:8443", "x", "sig=s", "https://***@host:8443/x?sig=***")


def test_what_a_variable_held_is_not_shown_in_a_url():
    place = parse_place("https://example.org/${TOKEN}/x", environ={"TOKEN": "hunter2"})
    assert (place.path, place.shown) == ("hunter2/x", "https://example.org/${TOKEN}/x")
    with pytest.raises(UsageError) as caught:
        parse_place("${SECRET}", environ={"SECRET": "https:/hunter2"})
    assert "hunter2" not in caught.value.message


def test_a_user_without_a_home_is_told(monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda text: text)
    with pytest.raises(UsageError, match="has none"):
        parse_place("~/x", environ={})


# --- every door ------------------------------------------------------------------------------------------------------------------------

CONTRACT = {
    "contract_version": "v1.0.0-crs:EPSG:4326-res:1m",
    "product_id": "3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10",
    "crs_epsg": 4326,
    "axis_order": "lon_lat",
    "geometry_type": "point",
    "coordinate_precision": 7,
    "schema_fields": [{"name": "pid", "type": "string", "nullable": False}],
    "freshness_sla_minutes": 1440,
    "availability_target": 0.99,
    "product_owner_id": "steward@example.org",
    "key": ["pid"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A work folder with a contract under a plain and an odd name."""
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HERE", str(tmp_path))
    for name in ("c.yaml", "a b.yaml"):
        (tmp_path / name).write_text(json.dumps(CONTRACT))
    return tmp_path


def publication(folder, key, text):
    """A publication file with a text at one key, read."""
    doc = {"contract": "c.yaml", "source": "x.gpkg", "destination": "out"}
    at = doc
    for step in key[:-1]:
        at[step] = {"path": "x.gpkg"} if step == "source" else {}
        at = at[step]
    at[key[-1]] = text
    (folder / "p.yaml").write_text(json.dumps(doc))
    return read_publication("p.yaml")


READ = {
    ("contract",): lambda found: found.contract,
    ("source",): lambda found: found.source.path,
    ("source", "path"): lambda found: found.source.path,
    ("destination",): lambda found: found.destination,
    ("key_migration",): lambda found: found.key_migration,
    ("crs", "grids"): lambda found: found.crs.grids,
}


def test_every_key_that_holds_a_place_is_tried():
    assert set(READ) == set(PLACES)


@pytest.mark.parametrize("key", PLACES, ids=".".join)
@pytest.mark.parametrize("text", ["a b.yaml", "./x/../a b.yaml", "${HERE}/a b.yaml", "file://{here}/a%20b.yaml", "file:{here}/a%20b.yaml"])
def test_all_keys_of_a_publication_answer_alike(folder, key, text):
    assert READ[key](publication(folder, key, text.replace("{here}", str(folder)))) == str(folder / "a b.yaml")


@pytest.mark.parametrize("key", PLACES, ids=".".join)
@pytest.mark.parametrize(("text", "why"), [(text, why) for text, why in REFUSED if "\udcff" not in text])
def test_all_keys_of_a_publication_refuse_alike(folder, key, text, why):
    with pytest.raises(UsageError) as caught:
        publication(folder, key, text)
    assert caught.value.exit_code == 2
    assert caught.value.field == ".".join(key)
    assert "hunter2" not in caught.value.message
    if text.strip() and text.isprintable():  # blank text and control characters are refused where YAML is read
        assert why.replace("\\", "") in caught.value.message


@pytest.mark.parametrize("key", PLACES, ids=".".join)
@pytest.mark.parametrize("text", ELSEWHERE)
def test_no_key_of_a_publication_takes_a_place_elsewhere(folder, key, text):
    with pytest.raises(UsageError, match="not in this version") as caught:
        publication(folder, key, text)
    assert "hunter2" not in f"{caught.value.message} {caught.value.hint}"


def doors(folder):
    """Every way in that takes a text for a place, beside the keys of a publication."""
    plain = publication(folder, ("source",), "x.gpkg")
    return {
        "open_store": open_store,
        "open_dataset": open_dataset,
        "read_contract": read_contract,
        "read_publication": read_publication,
        "with_source": lambda text: with_source(plain, text),
        "open_source": lambda text: open_source(SourceSpec(text)),
    }


@pytest.mark.parametrize("door", ["open_store", "open_dataset", "read_contract", "read_publication", "with_source", "open_source"])
@pytest.mark.parametrize("text", [each for each, _ in REFUSED] + ELSEWHERE)
def test_every_door_refuses_alike(folder, door, text):
    with pytest.raises(UsageError) as caught:
        doors(folder)[door](text)
    assert caught.value.exit_code == 2
    assert caught.value.message.isprintable()
    assert "hunter2" not in f"{caught.value.message} {caught.value.field} {caught.value.hint}"
    assert sorted(each.name for each in folder.iterdir()) == ["a b.yaml", "c.yaml", "p.yaml"], "a folder was made"


def test_a_destination_named_by_a_variable_is_never_a_folder_of_that_name(folder):
    assert publication(folder, ("destination",), "${DEST}").destination == "/mnt/out"
    assert place_of("p.yaml") == ("p", "/mnt/out")
    with pytest.raises(UsageError, match="NOWHERE, which is not set"):
        publication(folder, ("destination",), "${NOWHERE}")
    assert place_of("p.yaml") is None


@pytest.mark.parametrize("text", ["$DEST", "$DEST/x", "out/$DEST", "%DEST%", "out/%DEST%/x"])
def test_a_destination_that_a_shell_would_name_otherwise_is_never_a_folder(folder, text):
    with pytest.raises(UsageError, match=r"DEST.*stays as it is") as told:
        publication(folder, ("destination",), text)
    assert "${DEST}" in told.value.hint
    for sound in ("out$1", "a$DEST", "$DEST.d", "50%", "%20"):
        assert publication(folder, ("destination",), sound).destination.endswith(sound)
