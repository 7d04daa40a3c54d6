"""Console blocks of documents: their commands are run for real, in order, and what they print is put in the place of what is shown.

Not here: which documents (the tests of docs and examples).

With MERESTONE_UPDATE_DOCUMENTS=1 in the environment, the tests write what is really printed into the documents instead of comparing.

A block is fenced as `console`. A line that begins with `$ ` is a command; all other lines are output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[a-z]*)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
UPDATE = os.environ.get("MERESTONE_UPDATE_DOCUMENTS") == "1"
HOME = "/home/you/merestone"  # what documents call the clone
_VARIES = (
    (re.compile(r"\b\d+(\.\d+)? s$|\b\d+ min \d+ s$", re.MULTILINE), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"), "WHEN"),
    (re.compile(r"\b[\d,.]+ (B|kB|MB|GB)\b"), "SIZE"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "RUN"),
    (re.compile(r"\b[0-9a-f]{4}-[0-9a-f]{4}\b"), "TOKEN"),
    (re.compile(r"pyarrow [\d.]+"), "pyarrow VERSION"),
    (re.compile(r"merestone kernel \w+"), "merestone kernel NAME"),
    (re.compile(r"[ \t]+"), " "),
)


def blocks(text: str, *languages: str) -> list[str]:
    """The bodies of the fenced blocks of some languages, without the indent of their fence."""
    return [
        re.sub(rf"^{found['indent']}", "", found["body"], flags=re.MULTILINE)
        for found in FENCE.finditer(text)
        if found["language"] in languages
    ]


def masked(text: str) -> str:
    """Text without what differs from run to run: times, ids, sizes, versions, and the width of columns that these make."""
    for pattern, word in _VARIES:
        text = pattern.sub(word, text)
    return text.strip()


def environment() -> dict[str, str]:
    """An environment in which `merestone` is the one under test."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


class Session:
    """A reader who types what a document shows, in a clone at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root
        self.code = 0

    def type(self, command: str) -> str:
        """Run one command; what it printed, with the clone called HOME."""
        if command.startswith("cd "):
            self.folder = (self.folder / command[3:]).resolve()
            return ""
        ended = subprocess.run(
            ["bash", "-c", f"(exit {self.code}); {command}"],
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        self.code = ended.returncode
        return ended.stdout.replace(str(self.root), HOME)

    def block(self, body: str) -> str:
        """A console block with the output that its commands really have."""
        out = []
        for line in body.splitlines():
            if line.startswith("$ "):
                printed = self.type(line[2:])
                out.append(f"{line}\n{printed}" + ("\n" if printed and not printed.endswith("\n") else ""))
        return "".join(out)

    def document(self, text: str) -> str:
        """A document with the real output in all of its console blocks."""
        return FENCE.sub(lambda found: f"```console\n{self.block(found['body'])}```" if found["language"] == "console" else found[0], text)
