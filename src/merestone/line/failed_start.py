"""Attempts that end before their run begins: a broken publication or contract, a damaged pointer. They too are on record.

Not here: how a run ends that has begun (`finish`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from merestone.dataset.current import MANIFESTS, POINTER
from merestone.dataset.record import RECORDS, RunRecord
from merestone.errors import MerestoneError
from merestone.line import environment
from merestone.line.run import derive_run_id
from merestone.publication.publication import Publication
from merestone.publication.reader import place_of
from merestone.storage.open import open_store
from merestone.storage.port import Store
from merestone.writer.commit import begin


@contextmanager
def on_record(publication: str | Publication, *, dry_run: bool) -> Iterator[None]:
    """Leave a record of what fails within, in the dataset that the publication file leads to.

    Nothing is written where the file does not name its destination (it may not be YAML), where nobody has published or tried to (a mistake
    makes no folder), and on a dry run. Where the record cannot be written, the first fault is the one that is reported.

    Args:
        publication: the publication file, or its value.
        dry_run: whether nothing at all is to be written.
    """
    started = environment.now()
    try:
        yield
    except MerestoneError as fault:
        place = None if dry_run else _place(publication)
        if place is not None:
            try:
                _record(*place, environment.stamp(started), fault)
            except MerestoneError as second:
                fault.add_note(f"no run record could be written: {second.message}")
        raise


def _place(publication: str | Publication) -> tuple[str, str] | None:
    """Name and destination, where they are known."""
    return place_of(publication) if isinstance(publication, str) else (publication.name, publication.destination)


def _record(name: str, destination: str, started: str, fault: MerestoneError) -> None:
    store = open_store(destination)
    if not _tried(store):
        return
    nonce = environment.nonce()
    attempt = begin(
        store, run_id=derive_run_id(name, None, f"not begun: {nonce}"), nonce=nonce, name=name, started_utc=started, parent=None
    )
    try:
        attempt.finish(
            RunRecord(
                attempt.run_id,
                attempt.number,
                "failed",
                name,
                started,
                environment.stamp(environment.now()),
                error=dict(fault.to_json()),
                tool=environment.tools(),
            )
        )
    finally:
        attempt.leave()


def _tried(store: Store) -> bool:
    """Whether somebody has published here, or tried to."""
    return store.size(POINTER) is not None or any(next(iter(store.list(folder)), None) for folder in (RECORDS, MANIFESTS))
