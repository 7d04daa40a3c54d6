"""Answers as small HTML tables, for notebooks. They need no network, and every text in them is escaped.

Not here: whole pages with maps (`render`), words for a terminal (`render.text`).
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterable, Mapping, Sequence

from merestone.json_value import Json
from merestone.results import json_form

ROWS = 20
"""How many entries of a list a table shows."""
_CELL = "padding:2px 8px;text-align:left;vertical-align:top"


class Shown:
    """An answer that a notebook shows as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The answer as an HTML table."""
        return of(self)


def of(value: object) -> str:
    """A dataclass as an HTML table: a row for each field that holds something."""
    rows = []
    for each in json_form.fields(type(value)):
        found = getattr(value, each.name)
        if found is not None and found not in ((), {}):
            rows.append((json_form.name_of(each), _cell(found)))
    return _whole(type(value).__name__, rows)


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], more: int = 0) -> str:
    """Rows under heads. `more`: how many further rows there are."""
    head = "".join(f'<th style="{_CELL}">{_escaped(each)}</th>' for each in heads)
    body = "".join("<tr>" + "".join(f'<td style="{_CELL}">{_cell(each)}</td>' for each in row) + "</tr>" for row in rows)
    rest = f'<tr><td colspan="{len(heads)}" style="{_CELL}">and {more:,} more</td></tr>' if more else ""
    caption = f"<caption>{_escaped(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}{rest}</tbody></table>"


def facts(title: str, rows: Mapping[str, Json]) -> str:
    """Names and values, one pair a row."""
    return _whole(title, [(name, _cell(each)) for name, each in rows.items()])


def _whole(title: str, rows: Sequence[tuple[str, str]]) -> str:
    body = "".join(f'<tr><th style="{_CELL}">{_escaped(name)}</th><td style="{_CELL}">{cell}</td></tr>' for name, cell in rows)
    return f"<table><caption>{_escaped(title)}</caption><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = {json_form.name_of(each): getattr(value, each.name) for each in json_form.fields(type(value))}
        return ", ".join(f"{_escaped(name)} {_cell(each)}" for name, each in held.items() if each not in (0, None, (), ""))
    if isinstance(value, Mapping):
        return "<br>".join(f"{_escaped(name)}: {_cell(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return _listed(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else _escaped(value)


def _listed(values: Sequence[object]) -> str:
    shown = values[:ROWS]
    kinds = {type(each) for each in shown}
    if len(kinds) == 1 and dataclasses.is_dataclass(kind := kinds.pop()):
        named = json_form.fields(kind)
        rows = [[getattr(each, one.name) for one in named] for each in shown]
        return table("", [json_form.name_of(one) for one in named], rows, len(values) - len(shown))
    more = f" and {len(values) - len(shown):,} more" if len(values) > len(shown) else ""
    return ", ".join(_cell(each) for each in shown) + more


def _escaped(value: object) -> str:
    return html.escape(str(value))
