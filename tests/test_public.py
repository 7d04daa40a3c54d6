"""The names that other code imports from `merestone` itself."""

import subprocess
import sys

import pytest

import merestone

NAMES = {
    "open",
    "Delta",
    "diff_against_manifest",
    "partitions_to_rewrite",
    "fingerprint_frame",
    "fingerprint_table",
    "LineageEvent",
    "LineageCollector",
    "LINEAGE_ARROW_SCHEMA",
    "make_event_id",
    "deduplicate",
    "conformance_summary",
}


def test_the_fixed_names_are_there():
    assert set(merestone.__all__) >= NAMES
    assert set(dir(merestone)) == set(merestone.__all__)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_name_is_loaded_on_first_use(name):
    assert getattr(merestone, name) is getattr(merestone, name)


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = merestone.nonsense


def test_importing_the_package_loads_nothing_heavy():
    probe = "import sys, merestone; sys.exit(' '.join({'numpy', 'pyarrow', 'shapely', 'pyproj'} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
