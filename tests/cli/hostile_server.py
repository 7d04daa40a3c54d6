"""Runs many command lines in one process, for tests that expect any of them to end the process.

    python hostile_server.py FILE START

FILE holds a JSON list of argument lists. From START on, writes `index code` for each; a traceback counts as code 70.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

from merestone.cli.main import root


def main():
    calls = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for number in range(int(sys.argv[2]), len(calls)):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = root.main(calls[number], prog_name="merestone", standalone_mode=False)
        said = out.getvalue()
        code = 70 if "Traceback" in said else code
        sys.stdout.write(f"{number} {code} {json.dumps(said[-400:]) if code == 70 else ''}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
