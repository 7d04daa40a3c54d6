"""Lineage put into a metadata record that exists already, in the record's own encoding; all else in it stays.

Not here: a record of our own (`iso19115`), refusing a DOCTYPE (`iso19115_lint.read_record`, which has to come first).

A record has one statement (INSPIRE): that of the record stays, and ours follows it in the same text. Doing it again replaces what was ours.
"""

from __future__ import annotations

import io
from xml.etree import ElementTree as ET

from merestone.render.iso19115 import GMD, ID, MDB, NAMESPACES, Record, lineage
from merestone.render.iso19115_lint import GMD as GMD_SPACE
from merestone.render.iso19115_lint import GML_ID, MRL, read_record
from merestone.render.iso19115_lint import MDB as MDB_SPACE
from merestone.render.xml_text import Element, document

MARK = "Merestone: "
"""What our part of the statement begins with."""

_LATER = {
    GMD: (
        "portrayalCatalogueInfo",
        "metadataConstraints",
        "applicationSchemaInfo",
        "metadataMaintenance",
        "series",
        "describes",
        "propertyType",
        "featureType",
        "featureAttribute",
    ),
    MDB: ("portrayalCatalogueInfo", "metadataConstraints", "applicationSchemaInfo", "metadataMaintenance", "acquisitionInformation"),
}
_ORDER = {GMD: ("statement", "processStep", "source"), MDB: ("statement", "scope", "additionalDocumentation", "source", "processStep")}


def encoding_of(root: ET.Element) -> str | None:
    """The encoding of a record by its root: gmd, mdb, or None for neither."""
    return {f"{{{GMD_SPACE}}}MD_Metadata": GMD, f"{{{MDB_SPACE}}}MD_Metadata": MDB}.get(root.tag)


def extend(data: bytes, record: Record, shown: str) -> str:
    """The record with our lineage in it.

    Args:
        data: the bytes of a gmd or mdb record.
        record: what we have to say.
        shown: the path that messages name.

    Raises:
        SourceError: a DOCTYPE, or not well-formed.
        ValueError: the root is not MD_Metadata in either encoding.
    """
    read_record(data, shown)
    builder = ET.TreeBuilder(insert_comments=True)
    root = ET.fromstring(data, ET.XMLParser(target=builder))  # noqa: S314 - as above
    encoding = encoding_of(root)
    if encoding is None:
        raise ValueError(f"the root of {shown} is {root.tag}, neither gmd:MD_Metadata nor mdb:MD_Metadata")
    ours = _parsed(lineage(record, encoding), encoding)
    space = GMD_SPACE if encoding == GMD else MRL
    theirs = [each for each in root.iter() if each.tag == f"{{{space}}}LI_Lineage"]
    target = theirs[0] if theirs else _place(root, encoding)
    _merge([target, *theirs[1:]], ours, space, encoding)
    for parent in list(root.iter()):
        for child in list(parent):
            if any(inner is each for each in theirs[1:] for inner in child):  # the property around a lineage that went into the first
                parent.remove(child)
    return _written(root, data, encoding)


def _merge(found: list[ET.Element], ours: ET.Element, space: str, encoding: str) -> None:
    """All children of theirs that are not ours from another time, and ours, in the order of the schema; one statement."""
    target = found[0]
    children = [child for each in found for child in each if not _is_ours(child)]
    said = ["".join(child.itertext()).strip() for child in children if child.tag == f"{{{space}}}statement"]
    before = " ".join(text for each in said if (text := each.partition(MARK)[0].strip()))
    (statement,) = (child for child in ours if child.tag == f"{{{space}}}statement")
    statement[0].text = f"{before} {MARK}{statement[0].text}".strip()
    kept = [child for child in children if child.tag != f"{{{space}}}statement"]
    has_scope = any(child.tag == f"{{{space}}}scope" for child in kept)
    merged = [*kept, *(child for child in ours if not (has_scope and child.tag == f"{{{space}}}scope"))]
    order = [f"{{{space}}}{name}" for name in _ORDER[encoding]]
    target[:] = sorted(merged, key=lambda each: order.index(each.tag) if each.tag in order else -1)


def _is_ours(child: ET.Element) -> bool:
    return any((each.get("id") or each.get(GML_ID) or "").startswith(ID) for each in child)


def _place(root: ET.Element, encoding: str) -> ET.Element:
    """A new, empty LI_Lineage where the schema wants it."""
    if encoding == MDB:
        holder = _insert(root, ET.Element(f"{{{MDB_SPACE}}}resourceLineage"), MDB)
        return ET.SubElement(holder, f"{{{MRL}}}LI_Lineage")
    quality = root.find(f"{{{GMD_SPACE}}}dataQualityInfo/{{{GMD_SPACE}}}DQ_DataQuality")
    if quality is None:
        holder = _insert(root, ET.Element(f"{{{GMD_SPACE}}}dataQualityInfo"), GMD)
        quality = ET.SubElement(holder, f"{{{GMD_SPACE}}}DQ_DataQuality")
        lists = "http://standards.iso.org/iso/19139/resources/gmxCodelists.xml#MD_ScopeCode"
        level = Element("gmd:MD_ScopeCode", "dataset", {"codeList": lists, "codeListValue": "dataset"})
        quality.append(_parsed(Element("gmd:scope", (Element("gmd:DQ_Scope", (Element("gmd:level", (level,)),)),)), GMD))
    return ET.SubElement(ET.SubElement(quality, f"{{{GMD_SPACE}}}lineage"), f"{{{GMD_SPACE}}}LI_Lineage")


def _insert(root: ET.Element, new: ET.Element, encoding: str) -> ET.Element:
    space = GMD_SPACE if encoding == GMD else MDB_SPACE
    later = {f"{{{space}}}{name}" for name in _LATER[encoding]}
    root.insert(next((at for at, child in enumerate(root) if child.tag in later), len(root)), new)
    return new


def _parsed(element: Element, encoding: str) -> ET.Element:
    spaces = {name: value for name, value in NAMESPACES[encoding].items() if name.startswith("xmlns:")}
    text = document(Element(element.name, element.content, {**spaces, **element.attributes}))
    return ET.fromstring(text.encode())  # noqa: S314 - our own text


def _written(root: ET.Element, data: bytes, encoding: str) -> str:
    """The document with the prefixes that it had; also those that only text or attribute values use."""
    prefixes: dict[str, str] = {}
    for _, (prefix, space) in ET.iterparse(io.BytesIO(data), events=("start-ns",)):  # noqa: S314 - as above
        prefixes.setdefault(prefix, space)
    for name, space in NAMESPACES[encoding].items():
        if name.startswith("xmlns:") and space not in prefixes.values():
            prefixes.setdefault(name.removeprefix("xmlns:"), space)
    used = {
        name[1:].partition("}")[0]
        for each in root.iter()
        if isinstance(each.tag, str)
        for name in (each.tag, *each.attrib)
        if name.startswith("{")
    }
    for prefix, space in prefixes.items():
        if space in used and prefix and not prefix.startswith("ns"):  # ElementTree keeps ns0, ns1, ... for itself
            ET.register_namespace(prefix, space)
        elif space not in used and prefix:
            root.set(f"xmlns:{prefix}", space)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
