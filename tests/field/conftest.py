"""Fixtures of the tests on the large public datasets."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from field.deliveries import delivery
from field.products import Product
from merestone.cli.main import root

WHERE = "MERESTONE_FIELD_DATA"


@pytest.fixture(scope="session")
def data():
    """The folder of the datasets."""
    shared = os.environ.get(WHERE)
    if not shared:
        pytest.skip(f"{WHERE} names no folder that holds data/ (make field SHARED=DIR)")
    folder = Path(shared) / "data"
    if not folder.is_dir():
        pytest.fail(f"{WHERE}: there is no folder {folder}")
    return folder


@pytest.fixture(scope="session")
def validator():
    """The GeoParquet validator of the geoparquet project."""
    return pytest.importorskip("geoparquet_validator", reason="geoparquet-validator is not installed: make field brings it")


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    code: int
    out: str
    err: str

    @property
    def doc(self) -> dict[str, Any]:
        """The one object on standard output."""
        return json.loads(self.out)


@pytest.fixture
def merestone(capsys):
    """Runs a command line in this process."""

    def run(*arguments):
        capsys.readouterr()
        code = root.main([str(each) for each in arguments], prog_name="merestone", standalone_mode=False)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Ended(code, out, err)

    return run


@dataclass
class Drafted:
    """A product as drafted by `merestone init` and settled by its entry in `products`. `deliveries` are files and what GeoPandas reads."""

    folder: Path
    product: Product
    deliveries: list
    contract: dict
    settings: dict

    def publication(self, name="published", **settings):
        """A publication file with a destination of that name."""
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps({**self.settings, **settings, "destination": f"./{name}"}), encoding="utf-8")
        return path


@pytest.fixture
def draft(data, tmp_path, merestone):
    """Makes a product ready to be published. `last`: only its last delivery is wanted."""

    def make(product, *, last=False):
        count = len(product.nights)
        wanted = {count - 1, product.draft, product.previous} if last else set(range(count))
        made = [delivery(night, data, tmp_path, n) if n in wanted else None for n, night in enumerate(product.nights)]
        source, folder = made[product.draft][0], tmp_path / "draft"
        before = [] if product.previous is None else ["--previous", made[product.previous][0]]
        ended = merestone("init", source, "--key", product.key, *before, "--owner", "steward@example.org", "--out", folder, "--json")
        assert ended.code == 0, ended.err
        contract, settings = (yaml(ended.doc[each]) for each in ("contract", "publication"))
        contract.update(stated_extent(ended.doc["contract"]) | product.clauses, name="field")
        fields = [each for each in contract["schema_fields"] if each["name"] not in product.drop]
        contract["schema_fields"] = [{**each, "volatile": True} if each["name"] in product.volatile else each for each in fields]
        (tmp_path / "contract.yaml").write_text(json.dumps(contract, default=str), encoding="utf-8")
        stated = settings["source"] if isinstance(settings["source"], dict) else {}
        settings.update(product.settings, contract="contract.yaml", source={**stated, "path": str(source)})
        return Drafted(tmp_path, product, made, contract, settings)

    return make


def stated_extent(path) -> dict[str, list[float]]:
    """What a steward does where the order of axes cannot be seen: keep the first box, which is as delivered."""
    found = re.search(r"^# (extent: .*)$", Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    return {} if found is None else YAML(typ="safe", pure=True).load(found[1])


def yaml(path):
    return YAML(typ="safe", pure=True).load(Path(path))
