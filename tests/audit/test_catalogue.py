"""Records go into a real pycsw and come back through CSW with statement, steps and sources; OWSLib reads the statement.

Needs a virtual environment of its own, since pycsw wants other versions than the rest: `make soak` makes one, MERESTONE_PYCSW names it.
"""

import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from audit.test_iso import two_nights

CONFIGURATION = {
    "server": {
        "mimetype": "application/xml; charset=UTF-8",
        "encoding": "UTF-8",
        "language": "en-US",
        "maxrecords": 10,
        "timeout": 30,
        "pretty_print": True,
    },
    "logging": {"level": "ERROR"},
    "profiles": ["apiso", "iso19115p3"],
    "federatedcatalogues": [],
    "manager": {"transactions": True, "allowed_ips": ["127.0.0.1"]},
    "metadata": {
        "identification": {
            "title": "t",
            "description": "t",
            "keywords": ["t"],
            "keywords_type": "theme",
            "fees": "None",
            "accessconstraints": "None",
        },
        "provider": {"name": "t", "url": "http://127.0.0.1/"},
        "contact": dict.fromkeys(
            (
                "name",
                "position",
                "address",
                "city",
                "stateorprovince",
                "postalcode",
                "country",
                "phone",
                "fax",
                "email",
                "url",
                "hours",
                "instructions",
            ),
            "t",
        )
        | {"role": "pointOfContact"},
        "inspire": {
            "enabled": True,
            "languages_supported": ["eng"],
            "default_language": "eng",
            "date": "2026-11-30",
            "gemet_keywords": ["Addresses"],
            "conformity_service": "notEvaluated",
            "contact_name": "t",
            "contact_email": "t@example.org",
            "temp_extent": {"begin": "2026-01-01", "end": "2026-12-31"},
        },
    },
}
ASK = """
import json, sys
from lxml import etree
from owslib.csw import CatalogueServiceWeb
from owslib.fes import PropertyIsLike
from owslib.iso import MD_Metadata
base, *records = sys.argv[1:]
csw = CatalogueServiceWeb(base + "/csw")
csw.getrecords2(constraints=[PropertyIsLike("csw:AnyText", "%Merkle root%")], esn="full")
out = {"matches": csw.results["matches"]}
for encoding, number, space in (("gmd", records[0], "http://www.isotc211.org/2005/gmd"),
                                ("mdb", records[1], "http://standards.iso.org/iso/19115/-3/mdb/2.0")):
    csw.getrecordbyid(id=[number], outputschema=space)
    data = csw.response if isinstance(csw.response, bytes) else csw.response.encode()
    whole = etree.fromstring(data)
    count = lambda *names: sum(len(whole.xpath(f"//*[local-name()='{name}']")) for name in names)
    out[encoding] = {"steps": count("LI_ProcessStep", "LE_ProcessStep"), "sources": count("LI_Source"),
                     "statement": "".join(whole.xpath("string(//*[local-name()='statement'])")).strip()}
    if encoding == "gmd":
        out["owslib"] = MD_Metadata(whole.find(f"{{{space}}}MD_Metadata")).dataquality.lineage
print(json.dumps(out))
"""


@pytest.fixture
def pycsw():
    """The folder of pycsw's programs."""
    place = os.environ.get("MERESTONE_PYCSW")
    if place is None:
        pytest.skip("MERESTONE_PYCSW names no virtual environment with pycsw: `make soak` makes one")
    return Path(place) / "bin"


@pytest.mark.soak
def test_records_come_back_from_a_catalogue_with_their_steps(pycsw, estate, tmp_path):
    from merestone.audit.iso import record_of_version  # noqa: PLC0415 - as above
    from merestone.render.iso19115 import render  # noqa: PLC0415 - only where the catalogue is there

    record = record_of_version(str(two_nights(estate, tmp_path).url))
    assert len(record.steps) > 3
    assert len(record.sources) == 2
    (tmp_path / "records").mkdir()
    for encoding in ("gmd", "mdb"):
        (tmp_path / "records" / f"{encoding}.xml").write_text(render(record, encoding), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    settings = tmp_path / "pycsw.yml"
    settings.write_text(
        json.dumps(
            {
                **CONFIGURATION,
                "server": {**CONFIGURATION["server"], "url": url},
                "repository": {"database": f"sqlite:///{tmp_path}/records.db", "table": "records"},
            }
        )
    )
    subprocess.run([pycsw / "pycsw-admin.py", "setup-repository", "-c", settings], check=True, capture_output=True)
    subprocess.run(
        [pycsw / "pycsw-admin.py", "load-records", "-c", settings, "-p", tmp_path / "records", "-r", "-y"], check=True, capture_output=True
    )
    server = subprocess.Popen(
        [pycsw / "gunicorn", "-b", f"127.0.0.1:{port}", "-w", "1", "pycsw.wsgi_flask:APP"],
        env={**os.environ, "PYCSW_CONFIG": str(settings)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(url)
        asked = subprocess.run(
            [pycsw / "python", "-W", "ignore", "-c", ASK, url, f"urn:uuid:{record.identifier}", record.identifier],
            check=True,
            capture_output=True,
            text=True,
        )
    finally:
        server.terminate()
        server.wait(30)
    found = json.loads(asked.stdout)
    assert found["matches"] == 2
    for encoding in ("gmd", "mdb"):
        assert found[encoding] == {"steps": len(record.steps), "sources": 2, "statement": record.statement}
    assert found["owslib"] == record.statement


def _wait(url):
    for _ in range(120):
        try:
            with urllib.request.urlopen(f"{url}/csw?service=CSW&request=GetCapabilities"):  # noqa: S310 - a server of ours
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail("the catalogue did not come up")
