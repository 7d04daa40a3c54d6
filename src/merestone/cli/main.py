"""The command `merestone`: which commands there are, and where they live.

Not here: the commands themselves, one module a family; how they end (`edge`).
"""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from merestone import __version__
from merestone.cli import edge
from merestone.cli.family import Family, Lazy, environment_flag, reached
from merestone.errors import EXIT_DONE

COMMANDS = {
    "init": Lazy("merestone.cli.init", "init", "Draft a contract and a publication file from a delivery."),
    "publish": Lazy("merestone.cli.publish", "publish", "Publish a delivery; only what changed is written."),
    "check": Lazy("merestone.cli.check", "check", "Check a delivery against its contract; publish nothing."),
    "diagnose": Lazy("merestone.cli.check", "diagnose", "Find the first fault of a delivery, surface by surface, and its remedy."),
    "diff": Lazy("merestone.cli.compare", "diff", "Compare two files or dataset versions; publish nothing."),
    "read": Lazy("merestone.cli.dataset", "read", "Read features of a version, or write them to a file."),
    "files": Lazy("merestone.cli.dataset", "files", "List the live files of a version, or make a view of them for DuckDB or GDAL."),
    "changes": Lazy("merestone.cli.changes", "changes", "Show what changed between two versions."),
    "apply": Lazy("merestone.cli.compare", "apply", "Replay changes onto a copy, and prove that it arrived."),
    "log": Lazy("merestone.cli.dataset", "log", "List the versions of a dataset."),
    "status": Lazy("merestone.cli.dataset", "status", "Show how a dataset stands: freshness against its promise, refused runs, storage."),
    "rollback": Lazy("merestone.cli.rollback", "rollback", "Go back to an older version, as a new version with a reason."),
    "verify": Lazy("merestone.cli.dataset", "verify", "Prove every file of a dataset against its manifests."),
    "contract": Lazy("merestone.cli.contract", "contract", "Check, draft and show contracts."),
    "lineage": Lazy("merestone.cli.lineage", "lineage", "Ask what happened to the features of a run, and why."),
}

LATER = {
    "reclaim": "`merestone status DATASET` shows what old versions hold",
    "drift": "",
    "resort": "",
    "export": "`merestone files DATASET --as duckdb` or `--as vrt` shows a version in place; `merestone read DATASET --out FILE` copies it",
    "audit": "",
    "serve": "",
}


class Root(Family):
    """The top of the command line: whatever happens below, it ends as `edge` says."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; ends the process with the exit code, or returns it where `standalone_mode` is off."""
        arguments = list(sys.argv[1:] if args is None else args)
        flags = arguments[: arguments.index("--")] if "--" in arguments else arguments
        as_json, debug = "--json" in flags, "--debug" in flags

        def called() -> int:
            path, command = reached(self, flags)
            return edge.end(
                lambda: click.Group.main(
                    self, arguments, prog_name, complete_var, standalone_mode=False, windows_expand_args=windows_expand_args, **extra
                ),
                edge.Call(command, as_json=as_json or environment_flag(path, "--json"), debug=debug),
            )

        # The outer end is for Ctrl-C and faults while the modules of the command are loaded.
        code = edge.end(called, edge.Call(as_json=as_json, debug=debug))
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: click.Context) -> Any:
        """As usual. A reader of standard output may go away when it has seen enough (click would end with 1, a refusal)."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            edge.hush()
            return EXIT_DONE
        except KeyboardInterrupt as fault:
            raise edge.stopped(
                fault, ctx.invoked_subcommand
            ) from None  # click would make one exception of all signals, and a line of its own


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the version and the kernel in use."""
    if not value or ctx.resilient_parsing:
        return
    from merestone.api.about import about  # noqa: PLC0415 - only this answer needs the kernel

    click.echo(f"merestone {__version__} ({about()})")
    ctx.exit()


@click.command(cls=Root, name="merestone", lazy=COMMANDS, later=LATER, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version and exit.")
@click.option("--debug", is_flag=True, expose_value=False, help="Keep the traceback of an unexpected fault in a file.")
def root() -> None:
    """Publish spatial datasets under a contract, at the cost of what changed.

    DATASET is a folder that holds a published dataset, or a publication file (then its destination); @N names a version.

    Exit codes: 0 done or unchanged, 1 refused by contract or guard, 2 wrong usage, 3 source unreadable, 4 store unavailable, 5 another
    publisher won, 6 published state corrupt, 7 outcome unknown, 8 something missing on this machine, 70 a fault of Merestone,
    74 done, and the answer could not be written.
    """


class _LeftOut:
    """Finds no pandas in a process that is a command: pyarrow and pyogrio load it where it is installed, and no command has a use for it."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        """Say that there is none, as where only Merestone is installed."""
        if name in ("pandas", "geopandas"):
            raise ModuleNotFoundError(f"no command needs {name}, which takes a fifth of a second to load", name=name)


def main() -> None:
    """The entry point of the installed command."""
    sys.meta_path.insert(0, _LeftOut)
    if not sys.warnoptions:
        # Warnings of libraries are for developers; what a user has to know stands in the answers.
        warnings.simplefilter("ignore")
        # The category is named as text: its module is not loaded for every help page.
        warnings.filterwarnings("always", message="the compiled kernel is missing")
        warnings.formatwarning = lambda message, *_: f"merestone: {message}\n"
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Pipes carry UTF-8 on every system; what a terminal cannot show is escaped, never an error.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    for each in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(each) is not signal.SIG_IGN:  # as in a background job: Ctrl-C is for the command in front
            signal.signal(each, _stopped)
    root(prog_name="merestone")


def _stopped(number: int, _: Any) -> NoReturn:
    """End the run, which writes its record and removes its intent on the way out."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # a second one must not break off the record
    edge.stopped_by = number
    raise edge.Terminated if number == signal.SIGTERM else KeyboardInterrupt


if __name__ == "__main__":
    main()
