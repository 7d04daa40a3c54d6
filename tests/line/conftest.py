"""Which tests of the line are run on a second store, too."""

from __future__ import annotations

# Short modules that meet every kind of object. `make test-memory` runs the whole room on the store in memory.
ON_BOTH = {"test_files", "test_same_content"}


def pytest_generate_tests(metafunc):
    name = metafunc.module.__name__.rpartition(".")[2]
    if name in ON_BOTH and "store_kind" in metafunc.fixturenames and metafunc.config.getoption("--store") == "local":
        metafunc.parametrize("store_kind", ["local", "memory"], indirect=False)
