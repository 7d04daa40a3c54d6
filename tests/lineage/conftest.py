"""An event store, and a way to seal runs into it."""

from datetime import date

import pyarrow as pa
import pytest

from lineage.events import TIME
from merestone.lineage.store.writing import RunWriter
from merestone.storage.local import LocalStore


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "dataset")


@pytest.fixture
def seal(store, tmp_path):
    """Seal some events as one attempt of a run; the n-th call is a day later."""
    calls = []

    def sealing(run, events, attempt=1, **how):
        calls.append(run)
        scratch = tmp_path / f"scratch{len(calls)}"
        scratch.mkdir()
        writer = RunWriter(str(scratch), run, attempt, f"n{len(calls)}", **how)
        for each in [events] if isinstance(events, pa.Table) else events:
            writer.write(each)
        return writer.seal(
            store,
            run_date=date(2026, 3, len(calls)),
            plan=["crs_normalize", "snap", "validate"],
            tool={"PROJ": "9.5"},
            time=TIME.replace(day=len(calls)),
        )

    return sealing
