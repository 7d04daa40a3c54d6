"""The frame of every HTML page: one file that needs no network, with its look, its script and its data in it.

Not here: what the pages show (`map`, `findings_page`, `scorecard`). Values of features and deliveries travel as JSON, and the script
sets them as text: no value can become markup.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from merestone.json_value import Json

_HEAD: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
"""


def framed(title: str, style: str, body: str) -> str:
    """A page as HTML text.

    Args:
        title: of the window, as plain text.
        style: its look, as CSS.
        body: what stands in it, as HTML.
    """
    return f"{_HEAD}<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"


def self_contained(name: str, title: str, data: Mapping[str, Json]) -> str:
    """A page that draws its data, as HTML text: `name`.html, `name`.css and `name`.js beside this module, over page.css and page.js.

    Args:
        name: of the page.
        title: of the window, as plain text.
        data: what the script shows, as JSON values.

    Raises:
        ValueError: a number in `data` is not finite.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    body = f'{_part(name, "html")}<script type="application/json" id="data">{text}</script>\n'
    body += f"<script>\n{_part('page', 'js')}{_part(name, 'js')}</script>\n"
    return framed(title, _part("page", "css") + _part(name, "css"), body)


def _part(name: str, kind: str) -> str:
    return files("merestone.render").joinpath(f"{name}.{kind}").read_text(encoding="utf-8")
