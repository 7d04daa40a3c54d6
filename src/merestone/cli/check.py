"""The commands `check` and `diagnose`.

Not here: the check (`api.checking`), its words (`render`).
"""

from __future__ import annotations

from datetime import datetime

import click

from merestone.api import checking
from merestone.cli import edge, next_steps, options, progress
from merestone.errors import EXIT_DONE, EXIT_REFUSED
from merestone.render import ci, diagnosis, text


@click.command()
@click.argument("target", metavar="DELIVERY|DATASET|PUBLICATION")
@click.option("--contract", metavar="FILE", help="The contract to check a delivery against.")
@click.option("--layer", metavar="NAME", help="The layer of the delivery (with --contract).")
@click.option("--source", metavar="PATH", help="The delivery, in place of the one that the publication file names.")
@click.option("--errors", metavar="FILE", help="Write every place of every finding as a layer of points: .gpkg, .geojson.")
@click.option("--html", metavar="FILE", help="Write a page with the findings and a map of their places; it needs no network.")
@click.option("--junit", metavar="FILE", help="Write the result as JUnit XML.")
@click.option("--sarif", metavar="FILE", help="Write the result as SARIF 2.1.0.")
@click.option("--now", callback=options.instant, metavar="TIME", help="Judge the age of the data as at this time: 2026-03-01T06:00:00Z.")
@click.option("--allow-empty", is_flag=True, help="Accept a delivery without rows.")
@click.option("--annotate", is_flag=True, help="Print the findings as annotations of GitHub Actions, on standard error.")
@options.later("--strict")
@options.later("--offline")
@options.later("--record")
@options.later("--without-policy")
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
    now: datetime | None,
    allow_empty: bool,
    annotate: bool,
    as_json: bool,
) -> int:
    """Check a delivery against its contract; publish nothing.

    A DELIVERY with --contract; a DATASET[@N] with the --contract that a consumer relies on; or a PUBLICATION file alone, whose source, key and
    column mapping then hold. Every row is checked.
    Exit 0 where it passes, 1 where it breaks the contract; a check that could not run, or had no row to judge, is never a pass.
    """
    with progress.shown() as watch:
        result = checking.check(
            target,
            contract=contract,
            layer=layer,
            source=source,
            now=now,
            allow_empty=allow_empty,
            errors=errors,
            html=html,
            junit=junit,
            sarif=sarif,
            progress=watch,
        )
    if annotate:
        click.echo(ci.workflow_commands(result), err=True)
    made = [f"  written    {path}" for path in (errors, html, junit, sarif) if path is not None]
    edge.answer(result, "\n".join([text.check(result), *next_steps.check(result), *made]), as_json=as_json, report=not result.refused)
    return EXIT_REFUSED if result.refused else EXIT_DONE


@click.command()
@click.argument("delivery", metavar="DELIVERY")
@click.option("--contract", metavar="FILE", required=True, help="The contract to diagnose the delivery against.")
@click.option("--layer", metavar="NAME", help="The layer of the delivery.")
@click.option("--allow-empty", is_flag=True, help="Accept a delivery without rows.")
@options.as_json
def diagnose(delivery: str, contract: str, layer: str | None, allow_empty: bool, as_json: bool) -> int:
    """Find the first fault of a delivery, surface by surface, and its remedy.

    The surfaces come in a fixed order: version pin, schema, CRS and axis order, precision, geometry, semantics, idempotency, service
    level. The walk ends at the first fault, which may be the cause of what follows; `merestone check` lists everything at once. A step
    that nothing was judged in says so.
    """
    result = checking.diagnose(delivery, contract=contract, layer=layer, allow_empty=allow_empty)
    edge.answer(result, diagnosis.text(result), as_json=as_json)
    return EXIT_REFUSED if result.refused else EXIT_DONE
