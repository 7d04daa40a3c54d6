"""The command `apply`.

Not here: replaying (`run.apply`), where steps come from (`run.step`).
"""

from __future__ import annotations

from pathlib import Path

import click

from merestone.cli import edge, options
from merestone.compare import step
from merestone.compare.apply import apply as replay
from merestone.errors import EXIT_DONE, EXIT_REFUSED, UsageError
from merestone.inspect import browse
from merestone.inspect.output import check_outputs
from merestone.render import jsonout, text
from merestone.storage.place import parse_place


@click.command()
@click.argument("dataset", metavar="DATASET|FEED")
@click.option(
    "--from",
    "start",
    type=click.IntRange(min=0),
    metavar="A",
    help="The version that the copy is at, 0 for nothing; the one before --to by default.",
)
@click.option("--to", "end", type=click.IntRange(min=1), metavar="B", help="The version to arrive at; the current one by default.")
@click.option(
    "--onto",
    required=True,
    metavar="TARGET",
    help="The copy: a file (.parquet, .gpkg, .geojson, .geojsons, .geojsonl) or a dataset's folder.",
)
@options.as_json
def apply(dataset: str, start: int | None, end: int | None, onto: str, as_json: bool) -> int:
    """Replay changes onto a copy, and prove that it arrived.

    The changes come from a dataset, or from a FEED that `merestone changes DATASET --out FILE.parquet` wrote. The copy must hold exactly
    version A, whatever its format and row order: the digest of all its features says so (exit 1 where it does not). It is replaced at once,
    and only when the new one reads back as exactly version B. With --from 0 a copy is made where there is none.
    """
    if not Path(parse_place(onto, field="--onto").path).is_dir():  # a dataset is written by its publisher
        check_outputs({"--onto": onto}, [dataset])
    if Path(dataset).suffix.lower() in (".parquet", ".geoparquet", ".geojsons", ".geojsonl"):
        if start is not None or end is not None:
            raise UsageError(
                "a feed file names its versions itself", field="--from" if start is not None else "--to", hint="leave out --from and --to"
            )
        taken = step.of_file(dataset)
    else:
        taken = step.of_dataset(browse.whole(dataset), start, end)
    result = replay(taken, onto)
    edge.answer(jsonout.apply(result), text.apply(result), as_json=as_json)
    return EXIT_REFUSED if result.status == "refused" else EXIT_DONE
