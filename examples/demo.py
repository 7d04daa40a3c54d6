"""The main job on real data, as commands that one can type oneself: `make demo`.

Not here: the data and the contract (`cambridge/`), what the output means (docs/tutorial.md, which shows it too; a test compares).
"""

# ruff: noqa: INP001, T201, S603 - a script, no package; it prints, and runs the commands that it lists

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("examples", "cambridge")  # where the commands run
OUT = Path("out", "demo")  # what they write
THANKS = "City of Cambridge, Massachusetts, GIS (PDDL 1.0)"

ABOUT = f"""\
Four real exports of the street centerlines of Cambridge, Massachusetts, are published one after the other.
Data: {THANKS}. Everything is written to {OUT}, which is emptied first."""

END = f"""\
The map pages are {OUT / "v2.html"} and {OUT / "v3.html"}: open them in a browser. docs/tutorial.md goes through all of this slowly;
README.md says how to do it with a file of your own."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command: what is said before it, its arguments, the exit code that it has to end with."""

    words: str
    arguments: tuple[str, ...]
    exit_code: int = 0


STEPS = (
    Step(
        "The export of 3 March: a first publish. Every road is new.",
        ("publish", "streets.yaml", "--source", "exports/2026-03-03.geojson.gz"),
    ),
    Step(
        "The export of 7 July. Every line of the file differs, since the source system hands out a new GlobalID for every road. "
        "The contract calls that column volatile, so what is left is what somebody edited: house numbers of seven streets.",
        ("publish", "streets.yaml", "--source", "exports/2026-07-07.geojson.gz"),
    ),
    Step(
        "The change on a map, before and after.", ("changes", "streets.yaml", "--html", "../../out/demo/v2.html", "--attribution", THANKS)
    ),
    Step(
        "The export of 17 August. First a dry run: what would be written, and what a rebuild would write.",
        ("publish", "streets.yaml", "--source", "exports/2026-08-17.geojson.gz", "--dry-run"),
    ),
    Step(
        "Then for good. Two roads changed; one file is written, the others stay as they are, byte for byte.",
        ("publish", "streets.yaml", "--source", "exports/2026-08-17.geojson.gz"),
    ),
    Step("Which two, and their map.", ("changes", "streets.yaml", "--keys", "--html", "../../out/demo/v3.html", "--attribution", THANKS)),
    Step("The same export once more: nothing to do.", ("publish", "streets.yaml", "--source", "exports/2026-08-17.geojson.gz")),
    Step(
        "The export of 1 June is another matter: it was made in another way, and somebody had saved a row without a road. "
        "It breaks the contract, so it is refused, with the fields that are at fault, and exit code 1.",
        ("publish", "streets.yaml", "--source", "exports/2026-06-01.geojson.gz"),
        exit_code=1,
    ),
    Step("What was published, version by version.", ("log", "streets.yaml")),
    Step("Why is Linnaea Street as it is?", ("lineage", "why", "streets.yaml", "Linnaea_St_12")),
    Step("Is everything there that the versions name, to the byte?", ("verify", "streets.yaml")),
)


def shown(arguments: tuple[str, ...]) -> str:
    """A command as one types it."""
    return " ".join(["merestone", *(f'"{each}"' if " " in each else each for each in arguments)])


def run(step: Step, merestone: Path) -> bool:
    """Say what comes, run it, print what it printed; whether it ended as it should."""
    print(f"\n{textwrap.fill(step.words, 100, initial_indent='# ', subsequent_indent='# ')}\n$ {shown(step.arguments)}", flush=True)
    ended = subprocess.run(
        [merestone, *step.arguments], cwd=ROOT / FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False
    )
    print(ended.stdout, end="", flush=True)
    if step.exit_code:
        print(f"$ echo $?\n{ended.returncode}", flush=True)
    if ended.returncode != step.exit_code:
        print(f"\nThis should have ended with exit code {step.exit_code}, and ended with {ended.returncode}.", file=sys.stderr)
    return ended.returncode == step.exit_code


def main() -> int:
    """Run the demo; 1 where a step did not end as it should."""
    merestone = Path(sys.executable).with_name("merestone.exe" if sys.platform == "win32" else "merestone")
    if not merestone.exists():
        print(f"{merestone} is missing: run `make demo`, or install Merestone into this Python first.", file=sys.stderr)
        return 1
    shutil.rmtree(ROOT / OUT, ignore_errors=True)
    (ROOT / OUT).mkdir(parents=True)
    print(f"{ABOUT}\n\n$ cd {FOLDER}", flush=True)
    for step in STEPS:
        if not run(step, merestone):
            return 1
    print(f"\n{END}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
