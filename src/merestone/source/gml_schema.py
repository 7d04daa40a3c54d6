"""The description of a GML document that GDAL writes for itself (.gfs), and changes when it is to read more than it found.

GDAL looks for one geometry in each feature; a description that names several makes it read them all.
Not here: the document (`xml_features`), schemas that a producer delivers (.xsd, which GDAL reads in its place).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path


def describe_geometries(described: Path, feature_class: str, paths: Sequence[str]) -> bool:
    """Name the places of all geometries of a class. Whether the description has the class.

    Args:
        described: the .gfs, which GDAL wrote in our own folder.
        feature_class: the class.
        paths: below a feature, the elements that hold a geometry, as GDAL writes paths.
    """
    tree = ET.parse(described)  # noqa: S314 - GDAL wrote it
    of = next((each for each in tree.getroot().iter("GMLFeatureClass") if each.findtext("ElementPath") == feature_class), None)
    if of is None:
        return False
    for name in ("GeometryName", "GeometryElementPath", "GeometryType"):
        for each in of.findall(name):
            of.remove(each)
    names: list[str] = []
    for at, path in enumerate(paths):
        name = path.rpartition("|")[2]
        names.append(path.replace("|", "_") if name in names else name)
        entry = ET.Element("GeomPropertyDefn")
        for tag, text in (("Name", names[-1]), ("ElementPath", path)):
            ET.SubElement(entry, tag).text = text
        of.insert(2 + at, entry)
    tree.write(described)
    return True
