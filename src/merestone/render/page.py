"""One HTML file that needs no network: look, script and data of a page put together.

Not here: what the pages show (`map`, `findings_page`). Values of features and deliveries travel as JSON and are set as text by the script,
so that no value can become markup.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def self_contained(name: str, title: str, data: Mapping[str, Any]) -> str:
    """The page as HTML text, from `name`.html and `name`.js beside this module.

    Args:
        name: of the page.
        title: of the window, as plain text.
        data: what the script shows, as JSON values.

    Raises:
        ValueError: a number in `data` is not finite, or the page has no place for the data.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    room = files("merestone.render")
    # The script goes in before the data: a value of a feature must never be taken for a placeholder.
    head, mark, tail = (
        room.joinpath(f"{name}.html")
        .read_text(encoding="utf-8")
        .replace("@@SCRIPT@@", room.joinpath(f"{name}.js").read_text(encoding="utf-8"))
        .partition("@@DATA@@")
    )
    if not mark:
        raise ValueError(f"{name}.html has no place for the data")
    return head.replace("@@TITLE@@", html.escape(title)) + text + tail
