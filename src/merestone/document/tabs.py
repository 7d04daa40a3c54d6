"""A scanner of YAML that takes a tab where YAML 1.2 does: between tokens of a line, never as indentation.

Not here: what the tokens mean (`yaml_reader`).

ruamel.yaml skips spaces only and ends at a tab. YAML 1.2.2 separates tokens by spaces and tabs (section 6.2), and forbids tabs in indentation
(section 6.1): so a block that begins behind a tab is refused.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml.scanner import Scanner

_BREAKS = "\r\n\x85\u2028\u2029"
_ENDS = f"\0{_BREAKS}"
_WHITE = " \t"
_SIGNS = re.compile("[+-]?[1-9]?|[1-9][+-]")


class TabScanner(Scanner):
    """The scanner of ruamel.yaml, with tabs as white space where they may be."""

    def scan_to_next_token(self) -> Any:
        """Skip white space, comments and line breaks up to the next token."""
        reader = self.reader
        if reader.index == 0 and reader.peek() == "\ufeff":
            reader.forward()
        indents = reader.column == 0
        while True:
            while reader.peek() == " ":
                reader.forward()
            if reader.peek() == "\t" and (self.flow_level or not indents or self._is_blank()):
                self._skip_white()
                if not self.flow_level:
                    self.allow_simple_key = False  # no key and no block begins behind a tab
            if reader.peek() == "#":
                while reader.peek() not in _ENDS:
                    reader.forward()
            if not self.scan_line_break():
                return
            indents = True
            if not self.flow_level:
                self.allow_simple_key = True

    def scan_plain_spaces(self, indent: Any, start_mark: Any) -> Any:
        """The white space within a plain text, as it counts: a line break is one space. None at the end of the document."""
        del start_mark
        reader, length = self.reader, 0
        while reader.peek(length) in _WHITE:
            length += 1
        white = reader.prefix(length)
        reader.forward(length)
        if reader.peek() not in _BREAKS:
            return [white] if white else []
        breaks: list[Any] = []
        first = self.scan_line_break()
        self.allow_simple_key = True
        while not self._ends_document():
            while reader.peek() == " " or (reader.peek() == "\t" and reader.column >= indent):
                reader.forward()
            if reader.peek() not in _BREAKS:
                return [*([first] if first != "\n" else [] if breaks else [" "]), *breaks]
            breaks.append(self.scan_line_break())
        return None

    def scan_block_scalar_indicators(self, start_mark: Any) -> Any:
        """How a block of text ends, and how far it is indented: True, False or None, and a number or None."""
        signs = self.reader.prefix(2).partition("\t")[0]
        if not _SIGNS.fullmatch(signs) or self.reader.peek(len(signs)) != "\t":
            return super().scan_block_scalar_indicators(start_mark)
        self.reader.forward(len(signs))
        end, width = signs.strip("123456789"), signs.strip("+-")
        return end == "+" if end else None, int(width) if width else None

    def scan_block_scalar_ignored_line(self, start_mark: Any) -> Any:
        """What stands behind the sign of a block of text."""
        self._skip_white()
        return super().scan_block_scalar_ignored_line(start_mark)

    def _skip_white(self) -> None:
        while self.reader.peek() in _WHITE:
            self.reader.forward()

    def _is_blank(self) -> bool:
        """Whether nothing but white space, or a comment, stands on the rest of the line."""
        length = 0
        while self.reader.peek(length) in _WHITE:
            length += 1
        return self.reader.peek(length) in f"#{_ENDS}"

    def _ends_document(self) -> bool:
        prefix = self.reader.prefix(3)
        return self.reader.column == 0 and prefix in ("---", "...") and self.reader.peek(3) in f"{_WHITE}{_ENDS}"
