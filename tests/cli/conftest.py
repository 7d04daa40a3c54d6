"""The command line in this process: what it prints, and how it ends."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from shapely import Point

from cli.products import FIELDS, rows
from estate import save
from merestone.cli.main import root


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    code: int
    out: str
    err: str

    @property
    def doc(self) -> dict[str, Any]:
        """The one object on standard output."""
        assert self.out.count("\n") == 1, self.out
        assert self.out.endswith("\n")
        return json.loads(self.out)

    @property
    def said(self):
        return self.out + self.err


@pytest.fixture
def merestone(capsys):
    """Runs a command line; arguments are turned into text."""

    def run(*arguments):
        capsys.readouterr()
        code = root.main([str(each) for each in arguments], prog_name="merestone", standalone_mode=False)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Ended(code, out, err)

    return run


@pytest.fixture
def product(estate, tmp_path):
    """A product on disk: contract and publication written, two nights to deliver, nothing published yet."""
    made = estate(FIELDS, geometry_type="point", key=["pid"])
    made.settings.pop("key")
    made.settings["key"] = "pid"
    made.by_place(10)
    made.first = save(rows(), tmp_path / "first.gpkg")
    made.second = save(rows(p3={"owner": "b"}, p5={"geometry": Point(5.1, 52.5)}, p7=None, p99={"rank": 99}), tmp_path / "second.gpkg")
    made.write(made.first)
    made.file = made.folder / "product.yaml"
    made.contract = made.folder / "product.contract.yaml"
    return made


@pytest.fixture
def published(product, merestone):
    """The product after both nights."""
    for source in (product.first, product.second):
        assert merestone("publish", product.file, "--source", source).code == 0
    return product
