"""Reading proves what it reads: one flipped byte anywhere gives what was published or an error that names the object, never a wrong row."""

import random

import pytest

from dataset.build import Miniature, row
from merestone.dataset import proved
from merestone.dataset.current import current
from merestone.dataset.feed import changes
from merestone.dataset.version import Dataset
from merestone.errors import CorruptError
from merestone.writer.commit import begin
from merestone.writer.rollback import rollback
from stores import fresh

OLD = {f"p{n}": row(f"name {n % 7}", n, (n, n % 11), f"district=D{n % 2}") for n in range(60)}
NEW = {**{pid: each for pid, each in OLD.items() if pid != "p9"}, "p0": row("edited", 0, (1, 1), "district=D0")}


@pytest.fixture(scope="module")
def published():
    mini = Miniature(fresh(), row_group_rows=20)
    mini.publish(OLD)
    mini.publish(NEW)
    return mini


def everything(store):
    """What readers get: all rows, a box and some columns, an old version, the change with its rows, the file list."""
    dataset = Dataset(store)
    change = changes(dataset, 1, 2, with_rows=True)
    return [
        dataset.to_arrow(),
        dataset.to_arrow(columns=["rank"], bbox=(0, 0, 5, 5)),
        dataset.to_arrow(version=1),
        change.table,
        change.before,
        change.after,
        dataset.files(),
        dataset.versions(),
    ]


def flips(data, seed):
    """Places in an object: its ends, and some between."""
    noise = random.Random(seed)
    return sorted({*range(min(12, len(data))), *range(max(len(data) - 12, 0), len(data)), *(noise.randrange(len(data)) for _ in range(25))})


def outcome(store, truth):
    """The error that reading ends with; None where everything is as it was published."""
    try:
        found = everything(store)
    except CorruptError as fault:
        return fault
    for one, other in zip(found, truth, strict=True):
        assert one == other if isinstance(one, (list, tuple)) else one.equals(other), "a wrong row"
    return None


@pytest.mark.parametrize("small", [proved.SMALL, 0], ids=["read whole", "footer and pages"])
def test_a_flipped_byte_is_named_or_has_no_effect(published, monkeypatch, small):
    monkeypatch.setattr(proved, "SMALL", small)
    store, silent = published.store, set()
    truth, unread = everything(store), Dataset(store).manifest(1).changes.path
    names = [name for name, _ in store.list("")]
    for name in names:
        if name.startswith(("_runs/", "_intents/")):
            continue  # evidence of attempts: no version depends on it
        whole = store.get(name)
        for at in flips(whole, name):
            flipped = whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :]
            assert store.swap(name, whole, flipped)
            fault = outcome(store, truth)
            assert store.swap(name, flipped, whole)
            if fault is None:
                silent.add(name)
            else:
                assert fault.exit_code == 6
                assert name in f"{fault.field} {fault.message}" or name == "_current.json", f"{name} at {at}: {fault.message}"
    assert silent <= ({unread} if small else {unread, *(name for name in names if name.endswith(".parquet"))})


@pytest.mark.parametrize("how", ["missing", "short", "altered"])
def test_a_damaged_version_is_never_made_current_again(published, how):
    store = published.store
    first = Dataset(store).manifest(1)
    named = [each.path for each in Dataset(store).files(1)] + [first.changes.path, first.files.pages[0].path]
    assert len(named) == 4
    for name in named:
        head, whole = current(store), store.get(name)
        store.delete(name)
        if how != "missing":
            store.create(name, whole[:-1] if how == "short" else whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])
        attempt = begin(store, run_id="back", nonce=name[-12:-8], name="parcels", started_utc=published.time(), parent=head)
        with pytest.raises(CorruptError, match=name):
            rollback(attempt, head, to=1, reason="wrong", now=published.time())
        attempt.leave()
        store.delete(name)
        store.create(name, whole)
        assert current(store) == head
