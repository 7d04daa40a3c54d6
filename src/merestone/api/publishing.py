"""Publish a delivery, and go back to an older version.

Not here: the order of the line (`line`), the only code that moves the pointer (`writer.commit`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from merestone.api.answers import RollbackResult
from merestone.api.places import AnyDataset, Path, read_publication, whole
from merestone.dataset.current import current
from merestone.given import names_of
from merestone.line.failed_start import on_record
from merestone.line.publish import publish_onto
from merestone.line.rollback import roll_back
from merestone.line.settings import PublishSettings
from merestone.publication.publication import Publication
from merestone.publication.reader import with_source
from merestone.results.progress import Watch, nobody
from merestone.results.result import PublishResult, of_counts
from merestone.storage.open import open_store
from merestone.writer.records import check_run_id


def publish(
    publication: Path | Publication,
    *,
    source: Path | None = None,
    confirm: str | None = None,
    run_id: str | None = None,
    dry_run: bool = False,
    progress: Watch = nobody,
) -> PublishResult:
    """Publish a delivery. Only what changed is written.

    The old version stays current until the new one is whole. A delivery that breaks its contract is refused, and a change that a guard
    finds too large is stopped; both are results, not exceptions.

    Args:
        publication: a publication file, or the value that `read_publication` gives.
        source: the delivery, in place of the one that the publication names.
        confirm: the token of a run that a guard stopped. It lets exactly that change pass, once.
        run_id: a name for the run; by default it is derived from the delivery and the current version.
        dry_run: find out what would be published, and write nothing.
        progress: is called as the run goes on.

    Returns:
        What was published, or why nothing was. `refused` is true where the delivery was refused or stopped.

    Raises:
        MerestoneError: the question could not be answered. The old version stays, and the attempt is on record where that is possible.

    Example:
        >>> result = merestone.publish("parcels.yaml", source="tuesday.geojson")
        >>> result.status, result.version, result.delta.changed
        ('published', 3, 1)
    """
    named = publication if isinstance(publication, Publication) else os.fspath(publication)
    with on_record(named, dry_run=dry_run):
        settings = named if isinstance(named, Publication) else read_publication(named)
        if source is not None:
            settings = with_source(settings, os.fspath(source))
        if run_id is not None:
            check_run_id(run_id)
        store = open_store(settings.destination)
        head = current(store)
    return publish_onto(settings, PublishSettings(run_id=run_id, confirm=confirm, dry_run=dry_run, progress=progress), store, head)


def rollback(dataset: AnyDataset, *, to: int, reason: str, wrong: Sequence[str] = (), progress: Watch = nobody) -> RollbackResult:
    """Go back to an older version, as a new version with a reason. Nothing is deleted.

    A delivery that was taken back stops at a guard when it is published again.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        to: the version whose content comes back.
        reason: why; it is kept in the manifest.
        wrong: features whose content is wrong; none of them may come back. Each is a key as messages write it, or conditions such as
            `owner = 'Smith'`, which mean the features of the change that meet them. Without any, half of the change may come back.
        progress: called after each object of the older version that is proven.

    Raises:
        UsageError: no such older version exists, or the reason is missing.
        ConflictError: another publisher moved the pointer.
        StoreError: the store cannot be written.

    Example:
        >>> merestone.rollback("parcels.yaml", to=1, reason="wrong export").version
        3
    """
    done = roll_back(whole(dataset), to=to, reason=reason, wrong=names_of(wrong, "wrong"), watch=progress)
    made = done.committed.manifest
    return RollbackResult(
        name=made.name,
        version=made.version,
        to=to,
        reason=reason,
        features=made.features,
        delta=of_counts(made.counts),
        run_id=made.run_id,
        withdrawn=tuple(done.withdrawn),
        notices=tuple(done.notices),
    )
