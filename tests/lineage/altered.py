"""JSON objects with anything in the place of what belongs there, and run manifests that were edited and sealed again."""

import json

from merestone.lineage.event.checked_json import said
from merestone.lineage.event.merkle import root_of_run

LEFT_OUT = object()
JUNK = [None, True, -1, 3.5, "x", "\x00", [None], {}, "../.."]


def places(value, place=()):
    """The places of all members of a JSON value."""
    yield place
    for name, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(each, (*place, name))


def altered(doc, place, value):
    """A copy with another value at a place, or without that member."""
    if not place:
        return value
    copy = json.loads(json.dumps(doc))
    inner = copy
    for name in place[:-1]:
        inner = inner[name]
    if value is LEFT_OUT:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return copy


def sealed_again(doc):
    """The bytes of a run manifest whose root is made to fit what it says."""
    return json.dumps({**doc, "root": root_of_run([bytes.fromhex(each["root"]) for each in doc["parts"]], said(doc)).hex()}).encode()
