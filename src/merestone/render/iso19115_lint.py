"""Checks of an ISO 19115 record that its XML schemas leave out, and a safe way to read records of others.

The schemas accept times without a zone, links to nothing, invented code values, boxes of zeros. Each of them is an error here.
Not here: validation against the published schemas (any XML tool does it), writing records (`iso19115`).
"""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from xml.etree import ElementTree as ET

from merestone.errors import SourceError
from merestone.source.xml_check import check_xml

GMD = "http://www.isotc211.org/2005/gmd"
MDB = "http://standards.iso.org/iso/19115/-3/mdb/2.0"
MRL = "http://standards.iso.org/iso/19115/-3/mrl/2.0"
GML_ID = "{http://www.opengis.net/gml/3.2}id"
HREF = "{http://www.w3.org/1999/xlink}href"
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]00:00)")
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
_TIMES = ("DateTime", "timePosition", "beginPosition", "endPosition")
_ORDER = {GMD: ("statement", "processStep", "source"), MRL: ("statement", "scope", "additionalDocumentation", "source", "processStep")}
_BOX = ("westBoundLongitude", "eastBoundLongitude", "southBoundLatitude", "northBoundLatitude")

CODES: dict[str, frozenset[str]] = {
    name: frozenset(values.split())
    for name, values in {
        "MD_ScopeCode": "attribute attributeType collectionHardware collectionSession dataset series nonGeographicDataset dimensionGroup feature "
        "featureType propertyType fieldSession software service model tile metadata initiative sample document repository "
        "aggregate product collection coverage application",
        "CI_RoleCode": "resourceProvider custodian owner user distributor originator pointOfContact principalInvestigator processor publisher "
        "author sponsor coAuthor collaborator editor mediator rightsHolder contributor funder stakeholder",
        "CI_DateTypeCode": "creation publication revision expiry lastUpdate lastRevision nextUpdate unavailable inForce adopted deprecated "
        "superseded validityBegins validityExpires released distribution",
        "MD_CharacterSetCode": "ucs2 ucs4 utf7 utf8 utf16 8859part1 8859part2 8859part3 8859part4 8859part5 8859part6 8859part7 8859part8 "
        "8859part9 8859part10 8859part11 8859part13 8859part14 8859part15 8859part16 jis shiftJIS eucJP usAscii ebcdic "
        "eucKR big5 GB2312",
        "MD_ProgressCode": "completed historicalArchive obsolete onGoing planned required underDevelopment final pending retired superseded "
        "tentative valid accepted notAccepted withdrawn proposed deprecated",
        "MD_SpatialRepresentationTypeCode": "vector grid textTable tin stereoModel video",
        "MD_RestrictionCode": "copyright patent patentPending trademark license intellectualPropertyRights restricted otherRestrictions "
        "unrestricted licenceUnrestricted licenceEndUser licenceDistributor private statutory confidential "
        "sensitiveButUnclassified in-confidence",
        "MD_KeywordTypeCode": "discipline place stratum temporal theme dataCentre featureType instrument platform process project service "
        "product subTopicCategory taxon",
        "MD_MaintenanceFrequencyCode": "continual daily weekly fortnightly monthly quarterly biannually annually asNeeded irregular notPlanned "
        "unknown periodic semimonthly biennially",
        "MD_ClassificationCode": "unclassified restricted confidential secret topSecret sensitiveButUnclassified forOfficialUseOnly protected "
        "limitedDistribution",
        "CI_OnLineFunctionCode": "download information offlineAccess order search completeMetadata browseGraphic upload emailService browsing "
        "fileAccess",
        "DS_AssociationTypeCode": "crossReference largerWorkCitation partOfSeamlessDatabase source stereoMate isComposedOf collectiveTitle series "
        "dependency revisionOf",
    }.items()
}
"""The values of the code lists of ISO 19115:2003 and ISO 19115-1:2014 that records of datasets use."""

_MAX_DEPTH = 200
_LANGUAGE = re.compile(r"[a-z]{3}")


def read_record(data: bytes, shown: str) -> ET.Element:
    """A record as elements.

    Args:
        data: the bytes of the document.
        shown: the path that messages name.

    Raises:
        SourceError: there is a DOCTYPE, the document is not well-formed, or nests deeper than records do. Nothing is expanded or fetched.
    """
    check_xml(io.BytesIO(data), shown)
    try:
        return ET.fromstring(data, ET.XMLParser(target=_Shallow()))  # noqa: S314 - as above
    except RecursionError:
        raise SourceError(
            f"{shown} nests deeper than {_MAX_DEPTH} elements, as no metadata record does", field=shown, hint="look at the file"
        ) from None


class _Shallow(ET.TreeBuilder):
    """Builds elements up to a depth that those who walk them by recursion can take."""

    depth = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> ET.Element:
        """An element begins. Raises RecursionError where it lies too deep."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise RecursionError
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> ET.Element:
        """An element ends."""
        self.depth -= 1
        return super().end(tag)


def lint(root: ET.Element) -> list[str]:
    """What is wrong with a record, one sentence each; empty where nothing is.

    Args:
        root: gmd:MD_Metadata or mdb:MD_Metadata.
    """
    if root.tag not in (f"{{{GMD}}}MD_Metadata", f"{{{MDB}}}MD_Metadata"):
        return [f"the root is {root.tag}, neither gmd:MD_Metadata nor mdb:MD_Metadata"]
    return [*_times(root), *_links(root), *_codes(root), *_lineage(root), *_extents(root), *_texts(root)]


def _times(root: ET.Element) -> Iterator[str]:
    for element in root.iter():
        name, text = _local(element), (element.text or "").strip()
        if name in _TIMES and not element.get("indeterminatePosition"):
            try:
                datetime.fromisoformat(text)
                fits = bool(_TIME.fullmatch(text))
            except ValueError:
                fits = False
            if not fits:
                yield f"{name} {text!r} is not a time in UTC (2026-03-01T04:05:06Z)"
        elif name == "Date" and not _is_date(text):
            yield f"Date {text!r} is not a date"


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text + "-01-01"[len(text) - 4 :] if len(text) < 10 else text)
    except ValueError:
        return False
    return True


def _links(root: ET.Element) -> Iterator[str]:
    ids = Counter(value for element in root.iter() for name in ("id", GML_ID) if (value := element.get(name)) is not None)
    for value, times in ids.items():
        if times > 1:
            yield f"id {value!r} stands {times} times"
    for element in root.iter():
        target = element.get(HREF, "")
        if target.startswith("#") and target[1:] not in ids:
            yield f"{_local(element)} links to {target}, which is not in the record"


def _codes(root: ET.Element) -> Iterator[str]:
    for element in root.iter():
        value = element.get("codeListValue")
        if value is None:
            continue
        name = _local(element)
        if name == "LanguageCode":
            if not _LANGUAGE.fullmatch(value):
                yield f"LanguageCode {value!r} is not a code of ISO 639-2"
        elif name not in CODES:
            yield f"{name} is not a code list that this check knows"
        elif value not in CODES[name]:
            yield f"{name} has no value {value!r}"


def _lineage(root: ET.Element) -> Iterator[str]:
    found = [element for element in root.iter() if _local(element) == "LI_Lineage"]
    if not found:
        yield "the record has no LI_Lineage"
    statements = [each for element in found for each in element if _local(each) == "statement"]
    if len(found) > 1 or (found and len(statements) != 1):
        yield f"the record has {len(statements)} lineage statements in {len(found)} LI_Lineage; it has to have exactly one"
    for element in found:
        space = element.tag[1:].partition("}")[0]
        order = _ORDER.get(space, ())
        places = [order.index(_local(each)) if _local(each) in order else -1 for each in element]
        if -1 in places or places != sorted(places):
            yield f"the children of LI_Lineage stand as {', '.join(_local(each) for each in element)}; the order is {', '.join(order)}"
        for step in element.iter():
            if _local(step) in ("LI_ProcessStep", "LE_ProcessStep"):
                names = [_local(each) for each in step]
                if "description" not in names:
                    yield "a process step has no description"
                if not {"dateTime", "stepDateTime"} & set(names):
                    yield "a process step has no time"


def _extents(root: ET.Element) -> Iterator[str]:
    for box in root.iter():
        if _local(box) != "EX_GeographicBoundingBox":
            continue
        sides = {_local(each): "".join(each.itertext()).strip() for each in box}
        try:
            west, east, south, north = (float(sides[name]) for name in _BOX)
        except (KeyError, ValueError):
            yield "a bounding box lacks a side that is a number"
            continue
        if not all(map(math.isfinite, (west, east, south, north))) or max(abs(west), abs(east)) > 180 or not -90 <= south <= north <= 90:
            yield f"the bounding box {west:g}, {east:g}, {south:g}, {north:g} is not a place on Earth"
        elif west == east == south == north == 0:
            yield "the bounding box is all zeros: leave it out where the extent is unknown"


def _texts(root: ET.Element) -> Iterator[str]:
    parents = {child: parent for parent in root.iter() for child in parent}
    for element in root.iter():
        if _local(element) == "CharacterString" and not (element.text or "").strip():
            yield f"{_local(parents[element])} is empty"


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
