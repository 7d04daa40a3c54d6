"""What came of a sealed run: whether it published, and, where it brought no version, what stopped it.

A run that was refused sealed events too, most of them PASS: what each feature was by itself. Whoever shows events says this beside them.
Not here: the events (`lineage.store`), run records themselves (`dataset.record`), how answers look (`cli`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from merestone.dataset import log
from merestone.dataset.current import current
from merestone.dataset.manifest import HistoryLine
from merestone.dataset.record import read_named, record_name
from merestone.dataset.version import Dataset
from merestone.json_value import JsonObject
from merestone.lineage.store.run_manifest import RunManifest, attempts_that_count
from merestone.storage.port import Store

Status = Literal["published", "unchanged", "refused", "failed", "abandoned", "foreign", "unknown"]


@dataclass(frozen=True, slots=True)
class Fate:
    """What came of one run.

    Attributes:
        status: how it ended; "foreign" for a run of another program, "unknown" where no record says it.
        version: the version that it made.
        refused_by: what refused it.
        why: why it published nothing, in a sentence.
        rolled_back_by: the version that went back behind the one that it made.
    """

    status: Status
    version: int | None = None
    refused_by: str | None = None
    why: str | None = None
    rolled_back_by: int | None = None

    def to_json(self) -> JsonObject:
        """Its members in an answer."""
        return {
            "version": self.version,
            "status": self.status,
            "refused_by": self.refused_by,
            "why": self.why,
            "rolled_back_by": self.rolled_back_by,
        }


class Fates:
    """The fates of the runs of one dataset: what versions say is read once.

    Args:
        store: the dataset's store.
        versions: its history, newest first.
    """

    def __init__(self, store: Store, versions: Sequence[HistoryLine]) -> None:
        self._store = store
        # A roll-back names the lineage of an older version: the oldest version that names a run is the one that it made.
        self._made = {each.lineage["run_manifest"]: each.version for each in versions if each.lineage}
        self._back = _rolled_back(versions)

    @classmethod
    def of(cls, dataset: Dataset) -> Fates:
        """Those of a dataset, also of a store of events alone."""
        return cls(dataset.store, list(dataset.history()) if current(dataset.store) is not None else [])

    def of_run(self, attempts: Sequence[RunManifest]) -> Fate:
        """What came of a run, by its sealed attempts, the last of them last.

        Raises:
            CorruptError: its record cannot be read.
        """
        version = max((self._made[each.path] for each in attempts if each.path in self._made), default=None)
        if version is not None:
            return Fate("published", version, rolled_back_by=self._back.get(version))
        last = attempts_that_count(attempts)[-1]
        if last.foreign:
            about = last.doc["about"]
            failed = about.get("outcome") == "failed"
            return Fate("foreign", why=str(about.get("reason") or "it failed") if failed else None)
        name = record_name(last.run_id, last.attempt)
        if self._store.size(name) is not None:
            (record,) = read_named(self._store, [name])
            if record.status != "rolled_back":
                explanation = log.why(record) or None if record.status not in log.GOOD else None
                return Fate(record.status, refused_by=record.refused_by, why=explanation)
        why = next(
            (f"{each['surface']}.{each['rule']}: {each['observed']}" for each in last.doc["findings"] if each.get("severity") == "error"),
            None,
        )
        return Fate("refused" if why is not None else "unknown", why=why)


def _rolled_back(versions: Sequence[HistoryLine]) -> dict[int, int]:
    """By version that does not stand behind the newest one, the first later version that went back behind it."""
    if not versions:
        return {}
    known = {each.version: each for each in versions}
    stands: set[int] = set()
    at: int | None = versions[0].version
    while at is not None and at in known:
        stands.add(at)
        back = known[at].rollback
        at = int(back["to"]) if back is not None else known[at].parent
    out: dict[int, int] = {}
    for each in versions:  # newest first: of several, the first one is written last
        if each.rollback is not None:
            out.update((number, each.version) for number in range(int(each.rollback["to"]) + 1, each.version) if number not in stands)
    return out
