"""Whether a delivery says of itself that it is a part of something larger: a page of a service, or an answer that was cut.

Not here: files that break off (`gdal`, `xml_features`, `json_features`).
Clauses: OGC API Features part 1, 7.15; WFS 2.0 7.7.4.2 (numberMatched may be "unknown"); exceededTransferLimit of Esri's REST services.
"""

from __future__ import annotations

from collections.abc import Mapping

from merestone.json_value import Json
from merestone.results.finding import Finding
from merestone.rules import catalogue

_MATCHED = ("numberMatched", "totalFeatures")  # the second is GeoServer's name for the first
_HELD = ("numberReturned", "numberOfFeatures")  # what the document itself holds; the second is of WFS 1.1


def partial(members: Mapping[str, Json], rows: int) -> Finding | None:
    """The finding for a delivery that says that it is a part, quoting what it says.

    Args:
        members: the members of a JSON document, or the attributes of the root of an XML document.
        rows: how many features it holds.
    """
    said = []
    properties = members.get("properties")
    for where, holder in (("", members), ("properties.", properties if isinstance(properties, Mapping) else {})):
        if holder.get("exceededTransferLimit") in (True, "true"):
            said.append(f"{where}exceededTransferLimit is true")
    counts = {name: _count(members.get(name)) for name in _MATCHED}
    said += [f"{name} is {count:,} and it holds {rows:,} features" for name, count in counts.items() if count is not None and count > rows]
    held = {name: _count(members.get(name)) for name in _HELD}
    said += [f"{name} is {count:,} and it holds {rows:,} features" for name, count in held.items() if count is not None and count > rows]
    complete = any(count is not None and count <= rows for count in counts.values())
    if not complete and _has_next(members):
        said.append("it links to a next page")
    if not said:
        return None
    return catalogue.PARTIAL.finding("", said="; ".join(said))


def _count(value: Json) -> int | None:
    """A count as JSON or XML gives it, None where it is unknown."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def _has_next(members: Mapping[str, Json]) -> bool:
    links = members.get("links")
    listed = links if isinstance(links, list) else [links]
    if any(isinstance(each, Mapping) and each.get("rel") == "next" for each in listed):
        return True
    return (isinstance(links, Mapping) and bool(links.get("next"))) or (isinstance(members.get("next"), str) and bool(members["next"]))
