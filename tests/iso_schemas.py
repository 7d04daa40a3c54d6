"""The published XML schemas of ISO 19139 and ISO 19115-3, from wheels that carry them; nothing is fetched while tests run.

`make test` downloads the wheels to `xsd/` of the virtual environment (they are not installed: they would bring whole catalogues along).
The schema files carry no licence text of their own, so they are a test dependency and not part of this repository.
"""

from __future__ import annotations

import os
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest

WHEELS = Path(os.environ.get("MERESTONE_XSD", Path(sys.prefix) / "xsd"))
NEEDED = {
    "gmd": ("geonode_pycsw", "pycsw/plugins/profiles/apiso/schemas/ogc/iso/19139/20070417/gmx/gmx.xsd"),
    "mdb": ("ckanext_iso19115", "ckanext/iso19115/namespaces/19115/-3/mds/2.0/mds.xsd"),
}


class Schemas:
    """Validates documents of both encodings."""

    def __init__(self, folder: Path):
        self.etree = pytest.importorskip("lxml.etree", reason="lxml validates against the published schemas: pip install 'merestone[test]'")
        self.places = {}
        for encoding, (wheel, path) in NEEDED.items():
            found = sorted(WHEELS.glob(f"{wheel}-*.whl"))
            if not found:
                pytest.skip(f"no {wheel} wheel in {WHEELS}: `make test` downloads the published ISO schemas")
            place = folder / wheel
            if not place.exists():
                with zipfile.ZipFile(found[-1]) as whole:
                    whole.extractall(place)
            self.places[encoding] = place / path
        self.maps = [
            ("www.w3.org/1999/", folder / "geonode_pycsw/pycsw/core/schemas/w3c/1999"),
            ("schemas.opengis.net/", folder / "geonode_pycsw/pycsw/core/schemas/ogc"),
            ("schemas.opengis.net/", folder / "ckanext_iso19115/ckanext/iso19115/namespaces/schemas.opengis.net"),
        ]
        self._load = cache(self._loaded)

    def faults(self, text: str, encoding: str) -> list[str]:
        """What the schema says against a document."""
        schema = self._load(encoding)
        schema.validate(self.etree.fromstring(text.encode()))
        return [each.message for each in schema.error_log]

    def _loaded(self, encoding):
        etree, maps = self.etree, self.maps

        class Offline(etree.Resolver):
            def resolve(self, url, _public, context):
                key = url.removeprefix("https://").removeprefix("http://")
                for prefix, place in maps:
                    if key != url and key.startswith(prefix) and (file := place / key[len(prefix) :]).exists():
                        return self.resolve_filename(str(file), context)
                return None

        parser = etree.XMLParser(no_network=True)
        parser.resolvers.add(Offline())
        return etree.XMLSchema(etree.parse(str(self.places[encoding]), parser))
