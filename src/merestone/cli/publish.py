"""The commands `publish` and `check`.

Not here: the line that they run (`run.line`, `run.check`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from merestone import __version__
from merestone.cli import edge, options
from merestone.errors import EXIT_DONE, EXIT_REFUSED, MerestoneError, UsageError
from merestone.inspect.browse import current_version, publication_at
from merestone.inspect.output import check_outputs, written_whole
from merestone.line import check as checking
from merestone.line import publish as line
from merestone.line.failed_start import on_record
from merestone.line.finding_places import check_errors_path
from merestone.line.settings import CheckSettings
from merestone.publication.publication import Publication
from merestone.publication.reader import with_source
from merestone.publish.records import check_run_id
from merestone.render import ci, jsonout, text
from merestone.results.result import CheckResult
from merestone.storage.open import open_store

_PUBLICATIONS = (".yaml", ".yml", ".json")


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--source", metavar="PATH", help="The delivery, in place of the one that the file names.")
@click.option(
    "--confirm", metavar="TOKEN", help="Publish what a guard stopped, with the token that it printed; it holds once, for seven days."
)
@click.option(
    "--run-id", metavar="ID", help="Name the run (letters, digits, . _ -); by default the id is derived from delivery and version."
)
@click.option("--dry-run", is_flag=True, help="Say what would be published; write nothing.")
@options.as_json
def publish(file: str, source: str | None, confirm: str | None, run_id: str | None, dry_run: bool, as_json: bool) -> int:
    """Publish a delivery: only what changed is written anew.

    FILE is a publication file. The delivery is refused where it breaks its contract (exit 1), and stopped where a guard finds the change
    too large (exit 1, with a token to confirm). The old version stays current until the new one is whole.
    """
    with on_record(file, dry_run=dry_run):
        publication = publication_at(file)
        if source is not None:
            publication = with_source(publication, source)
        if run_id is not None:
            check_run_id(run_id)
        store = open_store(publication.destination)
        before = current_version(store)
    given = [("--source", source), ("--run-id", run_id)]
    again = shlex.join(["merestone", "publish", file, *(word for option, value in given if value is not None for word in (option, value))])
    with edge.tells_current(before, lambda: current_version(store)):
        result = line.publish(publication, line.PublishSettings(run_id=run_id, confirm=confirm, dry_run=dry_run, shown=file, command=again))
    if as_json:
        for notice in result.notices:
            edge.note(f"note: {notice}")
    edge.answer(jsonout.publish(result), text.publish(result, _look(file, publication, source)), as_json=as_json)
    return EXIT_REFUSED if result.status == "refused" else EXIT_DONE


def _look(file: str, publication: Publication, source: str | None) -> str:
    """The command that compares what is published with the delivery as it is; empty where it has to be mapped or asserted first."""
    spec = publication.source
    if publication.columns or spec.crs is not None or spec.encoding is not None or spec.geometry is not None:
        return ""
    layer = ["--layer", spec.layer] if spec.layer is not None else []
    return shlex.join(["merestone", "diff", file, source or edge.as_typed(spec.path), *layer, "--html", "change.html"])


@click.command()
@click.argument("target", metavar="DELIVERY|PUBLICATION")
@click.option("--contract", metavar="FILE", help="The contract to check a delivery against.")
@click.option("--layer", metavar="NAME", help="The layer of the delivery (with --contract).")
@click.option("--source", metavar="PATH", help="The delivery, in place of the one that the publication file names.")
@click.option("--errors", metavar="FILE", help="Write every place of every finding as a layer of points: .gpkg, .geojson.")
@click.option("--html", metavar="FILE", help="Write a page with the findings and a map of their places; it needs no network.")
@click.option("--junit", metavar="FILE", help="Write the result as JUnit XML.")
@click.option("--sarif", metavar="FILE", help="Write the result as SARIF 2.1.0.")
@click.option("--now", metavar="TIME", help="Judge the age of the data as at this time, such as 2026-03-01T06:00:00Z.")
@click.option("--annotate", is_flag=True, help="Print the findings as annotations of GitHub Actions, on standard error.")
@options.as_json
def check(
    target: str,
    contract: str | None,
    layer: str | None,
    source: str | None,
    errors: str | None,
    html: str | None,
    junit: str | None,
    sarif: str | None,
    now: str | None,
    annotate: bool,
    as_json: bool,
) -> int:
    """Check a delivery against its contract; publish nothing.

    Either a DELIVERY with --contract, or a PUBLICATION file, whose source, key and column mapping then hold. Every row is checked.
    Exit 0 where it passes, 1 where it breaks the contract; a check that could not run is never a pass.
    """
    at = options.instant("--now", now)
    check_outputs({"--errors": errors, "--html": html, "--junit": junit, "--sarif": sarif}, [target, contract, source])
    if errors is not None:
        check_errors_path(errors)
    if contract is not None:
        if source is not None:
            raise UsageError("--source goes with a publication file, --contract with a delivery", field="--source", hint="give one of them")
        publication = checking.of_contract(target, contract, layer)
        delivery = target
    else:
        if Path(target).suffix.lower() not in _PUBLICATIONS:
            raise UsageError(
                f"{target} is no publication file, and no contract is named to check it against",
                field=target,
                hint=f"merestone check {target} --contract FILE",
            )
        if layer is not None:
            raise UsageError(
                "--layer goes with --contract; a publication file names its layer itself",
                field="--layer",
                hint="write it in the publication file: source: {path: ..., layer: ...}",
            )
        publication = publication_at(target)
        if source is not None:
            publication = with_source(publication, source)
        delivery = source or edge.as_typed(publication.source.path)
    named = contract or edge.as_typed(publication.contract)
    reports = {junit: ci.junit, sarif: lambda result: ci.sarif(result, version=__version__)}
    try:
        result, page = checking.check(publication, CheckSettings(delivery, named, errors, page=html is not None, now=at))
    except MerestoneError as fault:  # a build that reads a report has to see that there was no answer
        _write_reports(reports, CheckResult(delivery, named, "error", 0, errors=(fault.message,)))
        raise
    _write_reports({**reports, html: lambda _: page or ""}, result)
    if annotate:
        edge.note(ci.workflow_commands(result))
    made = [path for path in (errors, html, junit, sarif) if path is not None]
    edge.answer(jsonout.check(result), "\n".join([text.check(result), *(f"  written    {path}" for path in made)]), as_json=as_json)
    return EXIT_REFUSED if result.status == "fail" else EXIT_DONE


def _write_reports(reports: Mapping[str | None, Callable[[CheckResult], str]], result: CheckResult) -> None:
    """Write each report to its file; None is a report that nobody asked for."""
    for path, made in reports.items():
        if path is not None:
            with written_whole(path) as place:
                Path(place).write_text(made(result), encoding="utf-8")
