"""SQL of an SQLite file that is a delivery, within bounds: a view is a query that its producer wrote, and a query may have no end.

SQLite counts the steps of its machine. A file is allowed so many for each of its bytes, many times what reading it takes; a query that
needs more is refused. One step may take long (a function over a large value): time has a bound, too. GDAL sets none, and runs every view of a
file when it opens it: so the views are tried here first.
Not here: what is asked of a layer (`geopackage`), edits that are still in a log (`sqlite_log`), archives (`unpack`).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from merestone.errors import SourceError
from merestone.words import duration

LEAST_STEPS: Final = 500_000_000
"""Any file may take so many steps: about five seconds."""
STEPS_PER_BYTE: Final = 200
"""Beyond that it may take so many for each byte. Reading and judging a table of twenty columns takes about five."""
LEAST_SECONDS: Final = 120.0
"""Any file may take so long."""
BYTES_PER_SECOND: Final = 1_000_000
"""Beyond that it may take a second for so many bytes: a slow disk is ten times as fast."""
_BETWEEN: Final = 1_000_000  # steps from one look at the count to the next


@contextmanager
def opened(path: Path, shown: str) -> Iterator[sqlite3.Connection]:
    """A connection that only reads, writes no file beside the database, takes text as it stands, and ends what has no end.

    Args:
        path: the file, finished: nothing of it in a log.
        shown: the path that messages name.

    Raises:
        KeyboardInterrupt: Ctrl-C, which ends a query that takes long.
        SourceError: in the block, SQLite cannot read the file, or takes more steps or more time than the bounds.
    """
    size = path.stat().st_size
    limit, seconds = max(LEAST_STEPS, STEPS_PER_BYTE * size), max(LEAST_SECONDS, size / BYTES_PER_SECOND)
    done = 0
    late = threading.Event()

    def counted() -> bool:
        nonlocal done
        done += _BETWEEN
        return done > limit or late.is_set()

    def stop() -> None:
        late.set()
        database.interrupt()

    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            database.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
            database.set_progress_handler(counted, _BETWEEN)
            timer = threading.Timer(seconds, stop)
            timer.daemon = True
            timer.start()
            try:
                yield database
            finally:
                timer.cancel()
                timer.join()
    except sqlite3.Error as fault:
        if done <= limit and not late.is_set() and getattr(fault, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from fault  # it came while SQLite called `counted`, and SQLite passes no exception on
        if done > limit or late.is_set():
            spent = f"{limit:,} steps of SQLite" if done > limit else duration(seconds)
            raise SourceError(
                f"a view of {shown} is a query that goes on after {spent}: it may have no end",
                field=shown,
                hint="store its rows in a table, and deliver that",
            ) from fault
        raise SourceError(f"{shown} is truncated or not GPKG: {fault}", field=shown, hint="copy or export it again") from fault


def check_views(path: Path, shown: str) -> None:
    """Try the first row of each view, as GDAL does with every one when it opens the file.

    Raises:
        SourceError: SQLite cannot read the file, or a view does not come to a first row within the bound.
    """
    with opened(path, shown) as database:
        for (name,) in database.execute("select name from sqlite_master where type = 'view'").fetchall():
            try:
                database.execute(f"select * from {quoted(name)} limit 1").fetchone()  # noqa: S608 - names are quoted
            except sqlite3.OperationalError as fault:
                if fault.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                    raise
                # A view that this SQLite cannot run is not a delivery; GDAL says so where it is the layer that was asked for.


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
