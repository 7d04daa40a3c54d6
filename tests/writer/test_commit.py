"""The commit: old or new and never between, whatever is killed, refused or lost on the way."""

import contextlib
import dataclasses

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from merestone.dataset.current import POINTER, chain, current, manifest_name
from merestone.dataset.manifest import FileSet, IndexRef, Manifest, ObjectRef, sha256
from merestone.dataset.record import RunRecord, read_records
from merestone.errors import ConflictError, CorruptError, InternalError, MerestoneError, StoreError, UnknownOutcomeError, UsageError
from merestone.storage.local import LocalStore
from merestone.writer.commit import begin
from merestone.writer.records import intents, next_attempt, write_up_abandoned
from stores import FaultyStore

NOW = "2026-03-02T02:00:00Z"
CALLS = [
    ("create", "_intents/"),
    ("create", "_changes/"),
    ("create", "_manifests/"),
    ("swap", POINTER),
    ("create", "_runs/"),
    ("delete", "_intents/"),
]
WRONGS = ["refuse", "lose", "drop", "late"]
STEPS = [f"{what}.{when}" for what in ("intent", "changes", "manifest", "pointer", "record") for when in ("before", "after")]


class KilledError(BaseException):
    """The process ends here."""


def killer(at):
    def step(name):
        if name == at:
            raise KilledError(name)

    return step


def builder(by, seen, content, **other):
    """What gives the manifest of a version that holds `content` in its change log."""
    name = f"_changes/{by.run_id}-{by.intent.nonce}.parquet"
    ref = ObjectRef(name, 0, len(content), sha256(content))

    def build(version):
        base = Manifest(
            version=version,
            parent=seen.manifest.version if seen else None,
            parent_sha256=seen.sha256 if seen else None,
            run_id=by.run_id,
            attempt=by.number,
            time_utc=NOW,
            name="roads",
            contract_version="v1.0.0-crs:EPSG:28992-res:1m",
            contract_sha256="0" * 64,
            contract={},
            key={},
            domain={},
            processing={},
            partitioning={},
            features=0,
            counts={"added": 0},
            files=FileSet(),
            changes=ref,
            index=IndexRef(None, None, ((version, ref),)),
            findings=None,
            lineage=None,
            delivery={"set_digest": content.decode()},
            set_digest="0",
            files_written=0,
            files_carried=0,
        )
        return dataclasses.replace(base, **other)

    return build


def record_of(attempt, status, **other):
    return RunRecord(attempt.run_id, attempt.number, status, "roads", NOW, NOW, **other)


def start(store, run_id, nonce, step=lambda _: None):
    parent = current(store)
    return begin(store, run_id=run_id, nonce=nonce, name="roads", started_utc=NOW, parent=parent, step=step), parent


def publish(store, run_id="r", nonce="n", content=b"x", step=lambda _: None):
    attempt, parent = start(store, run_id, nonce, step)
    try:
        step("changes.before")
        store.create(f"_changes/{run_id}-{nonce}.parquet", content)
        step("changes.after")
        done = attempt.commit(builder(attempt, parent, content), parent)
        attempt.finish(record_of(attempt, "published", version=done.manifest.version))
    finally:
        attempt.leave()  # as the operating system does for a process that ends
    return done


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    return FaultyStore() if request.param == "memory" else LocalStore(tmp_path / "ds")


def contents(store):
    """What each version in the chain holds, newest first."""
    head = current(store)
    return [store.get(manifest.changes.path) for manifest, _ in chain(store, head)] if head else []


def test_versions_follow_each_other(store):
    assert current(store) is None
    first = publish(store, nonce="a", content=b"1")
    second = publish(store, nonce="b", content=b"2")
    assert (first.manifest.version, second.manifest.version) == (1, 2)
    assert current(store) == second.current
    assert contents(store) == [b"2", b"1"]
    assert [(each.attempt, each.status) for each in read_records(store)] == [(1, "published"), (2, "published")]
    assert list(intents(store)) == []


@pytest.mark.parametrize("at", STEPS)
def test_a_kill_at_any_step_leaves_old_or_new_and_the_next_run_succeeds(store, at):
    publish(store, nonce="a", content=b"old")
    with pytest.raises(KilledError):
        publish(store, nonce="b", content=b"new", step=killer(at))
    moved = STEPS.index(at) >= STEPS.index("pointer.after")
    assert contents(store) == ([b"new", b"old"] if moved else [b"old"])

    written_up = write_up_abandoned(store, now=NOW, by="next")
    assert list(intents(store)) == []
    if at == "intent.before":
        assert written_up == []
        assert next_attempt(store, "r") == 2
    else:
        assert next_attempt(store, "r") == 3
        last = read_records(store)[-1]
        assert last.status == ("published" if moved else "abandoned")
        assert last.version == (2 if moved else 1)
        assert [each.written_up_by for each in written_up] == ([] if at == "record.after" else ["next"])
    publish(store, nonce="c", content=b"third")
    assert contents(store)[0] == b"third"
    assert contents(store)[1] == (b"new" if moved else b"old")


def test_a_living_attempt_is_not_written_up(store):
    attempt, parent = start(store, "r", "a")
    assert write_up_abandoned(store, now=NOW, by="other") == []
    assert [each.run_id for each in intents(store)] == ["r"]
    store.create("_changes/r-a.parquet", b"1")
    attempt.commit(builder(attempt, parent, b"1"), parent)
    attempt.finish(record_of(attempt, "published"))
    assert [each.status for each in read_records(store)] == ["published"]


def test_of_two_publishers_one_wins_and_the_other_loses_nothing(store):
    slow, seen = start(store, "slow", "a")
    store.create("_changes/slow-a.parquet", b"slow")
    publish(store, "fast", "b", b"fast")
    with pytest.raises(ConflictError, match="fast published version 1") as caught:
        slow.commit(builder(slow, seen, b"slow"), seen)
    assert caught.value.exit_code == 5
    slow.finish(record_of(slow, "failed", error=caught.value.to_json()))
    assert contents(store) == [b"fast"]
    assert store.get("_changes/slow-a.parquet") == b"slow"
    assert [name for name, _ in store.list("_manifests/")] == [manifest_name(1)], "a race that is lost already leaves no orphan"
    publish(store, "slow", "c", b"slow again")
    assert contents(store) == [b"slow again", b"fast"]


def test_a_publisher_that_loses_between_manifest_and_pointer_leaves_an_orphan_that_blocks_nobody(store):
    def step(name):
        if name == "pointer.before":
            publish(store, "fast", "b", b"fast")

    slow, seen = start(store, "slow", "a", step)
    store.create("_changes/slow-a.parquet", b"slow")
    with pytest.raises(ConflictError):
        slow.commit(builder(slow, seen, b"slow"), seen)
    slow.leave()
    assert current(store).manifest.version == 2
    assert store.size(manifest_name(1)) is not None
    publish(store, "next", "c", b"next")
    assert current(store).manifest.version == 3
    assert contents(store) == [b"next", b"fast"]


def test_numbers_go_on_after_the_highest_that_is_listed(store):
    publish(store, nonce="a")
    store.create(manifest_name(7), store.get(manifest_name(1)))
    assert publish(store, nonce="b").manifest.version == 8


def test_a_taken_number_is_passed_over():
    store = FaultyStore()
    publish(store, nonce="a")
    attempt, parent = start(store, "r", "b")
    store.create("_changes/r-b.parquet", b"2")

    def build(version):
        if version == 2:
            store.create(manifest_name(2), b"somebody else, just now")
        return builder(attempt, parent, b"2")(version)

    assert attempt.commit(build, parent).manifest.version == 3


@pytest.mark.parametrize("verb", ["create", "swap"])
@pytest.mark.parametrize("what", ["lose", "deny"])
def test_own_success_whose_answer_got_lost_is_success(verb, what):
    store = FaultyStore()
    publish(store, nonce="a", content=b"1")
    store.faults = [(verb, "_manifests/" if verb == "create" else POINTER, what)]
    done = publish(store, nonce="b", content=b"2")
    assert store.faults == []
    assert done.manifest.version == 2
    assert contents(store) == [b"2", b"1"]
    assert [name for name, _ in store.list("_manifests/")] == [manifest_name(1), manifest_name(2)]


def test_own_success_is_seen_under_a_later_version():
    """Our swap went through unanswered, and somebody published on top before we looked."""
    store = FaultyStore()
    publish(store, nonce="a", content=b"1")
    attempt, parent = start(store, "r", "b")
    store.create("_changes/r-b.parquet", b"2")
    swap = store.swap

    def unanswered(name, expected, data):
        store.swap = swap
        swap(name, expected, data)
        publish(store, "fast", "c", b"3")
        return False

    store.swap = unanswered
    assert attempt.commit(builder(attempt, parent, b"2"), parent).manifest.version == 2
    assert contents(store) == [b"3", b"2", b"1"]


def test_an_unanswered_swap_that_was_not_done_is_asked_again():
    store = FaultyStore()
    publish(store, nonce="a", content=b"1")
    store.faults = [("swap", POINTER, "drop")]
    publish(store, nonce="b", content=b"2")
    assert contents(store) == [b"2", b"1"]


@pytest.mark.parametrize("what", ["drop", "late"])
def test_what_cannot_be_told_is_said_and_the_next_run_names_who_became_current(what):
    store = FaultyStore()
    publish(store, nonce="a", content=b"1")
    attempt, parent = start(store, "r", "b")
    store.create("_changes/r-b.parquet", b"2")
    store.faults = [("swap", POINTER, what)] * 3
    before = set(store.objects) - {attempt.intent.lease}
    with pytest.raises(UnknownOutcomeError) as caught:
        attempt.commit(builder(attempt, parent, b"2"), parent)
    assert caught.value.exit_code == 7
    attempt.leave()
    assert before <= set(store.objects), "nothing is deleted"
    store.settle()
    (record,) = write_up_abandoned(store, now=NOW, by="next")
    assert (record.status, record.version) == (("published", 2) if what == "late" else ("abandoned", 1))
    publish(store, nonce="c", content=b"3")
    assert contents(store) == ([b"3", b"2", b"1"] if what == "late" else [b"3", b"1"])


def test_a_refusal_after_an_unanswered_request_says_nothing_about_the_request():
    """Found by the state machine below: the first request may still be on its way."""
    store = FaultyStore()
    attempt, parent = start(store, "r", "a")
    store.create("_changes/r-a.parquet", b"1")
    store.faults = [("swap", POINTER, "late"), ("swap", POINTER, "refuse"), ("swap", POINTER, "drop")]
    with pytest.raises(UnknownOutcomeError):
        attempt.commit(builder(attempt, parent, b"1"), parent)
    store.settle()
    assert contents(store) == [b"1"]


def test_a_pointer_that_cannot_be_read_back_is_unknown():
    store = FaultyStore()
    publish(store, nonce="a", content=b"1")
    attempt, parent = start(store, "r", "b")
    store.create("_changes/r-b.parquet", b"2")
    faults = {"pointer.before": [("swap", POINTER, "lose"), ("get", POINTER, "refuse")]}
    attempt.step = lambda name: store.faults.extend(faults.get(name, []))
    with pytest.raises(UnknownOutcomeError):
        attempt.commit(builder(attempt, parent, b"2"), parent)


@pytest.mark.parametrize(("verb", "name"), [("create", "_intents/"), ("create", "_manifests/"), ("swap", POINTER)])
def test_a_store_that_refuses_leaves_the_old_version(verb, name):
    store = FaultyStore()
    publish(store, nonce="a", content=b"1")
    store.faults = [(verb, name, "refuse")]
    with pytest.raises(StoreError) as caught:
        publish(store, nonce="b", content=b"2")
    assert caught.value.exit_code == 4
    assert contents(store) == [b"1"]
    write_up_abandoned(store, now=NOW, by="next")
    publish(store, nonce="c", content=b"3")
    assert contents(store) == [b"3", b"1"]


def test_a_record_that_cannot_be_written_is_written_up_by_the_next_run():
    store = FaultyStore()
    store.faults = [("create", "_runs/", "refuse")]
    with pytest.raises(StoreError):
        publish(store, nonce="a", content=b"1")
    assert contents(store) == [b"1"]
    assert read_records(store) == []
    (record,) = write_up_abandoned(store, now=NOW, by="next")
    assert (record.status, record.version, record.delivery) == ("published", 1, {"set_digest": "1"})


@pytest.mark.parametrize("what", ["lose", "deny"])
def test_a_record_whose_answer_got_lost_is_written_once(what):
    store = FaultyStore()
    store.faults = [("create", "_runs/", what)]
    publish(store, nonce="a", content=b"1")
    assert [each.status for each in read_records(store)] == ["published"]
    assert list(intents(store)) == []


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_an_object_that_did_not_arrive_whole_stops_the_commit(store, damage):
    publish(store, nonce="a", content=b"1")
    attempt, parent = start(store, "r", "b")
    if damage == "cut":
        store.create("_changes/r-b.parquet", b"half")
    with pytest.raises(StoreError, match=r"_changes/r-b\.parquet"):
        attempt.commit(builder(attempt, parent, b"half and half"), parent)
    assert contents(store) == [b"1"]
    assert store.size(manifest_name(2)) is None


def test_a_manifest_of_another_parent_is_a_fault_of_ours(store):
    publish(store, nonce="a", content=b"1")
    attempt, parent = start(store, "r", "b")
    store.create("_changes/r-b.parquet", b"2")
    for wrong in ({"parent": None}, {"parent_sha256": "0" * 64}, {"run_id": "x"}, {"attempt": 9}, {"version": 7}):
        with pytest.raises(InternalError):
            attempt.commit(builder(attempt, parent, b"2", **wrong), parent)
    with pytest.raises(InternalError):
        attempt.finish(RunRecord("other", 1, "failed", "roads", NOW, NOW))
    assert contents(store) == [b"1"]


@pytest.mark.parametrize("run_id", ["", "a/b", "../x", "-a", "a b", "é", "x" * 101])
def test_run_ids_that_cannot_stand_in_names_are_refused(run_id):
    with pytest.raises(UsageError, match="run id"):
        start(FaultyStore(), run_id, "n")


def test_runs_whose_names_begin_alike_are_told_apart(store):
    publish(store, "a", "n1", b"1")
    publish(store, "a-1", "n2", b"2")
    publish(store, "a-1", "n3", b"3")
    assert (next_attempt(store, "a"), next_attempt(store, "a-1"), next_attempt(store, "a-1-1")) == (2, 3, 1)
    assert [each.attempt for each in read_records(store, "a-1")] == [1, 2]


def test_leftovers_of_an_unfinished_first_publish_are_no_dataset(store):
    with pytest.raises(KilledError):
        publish(store, content=b"1", step=killer("manifest.after"))
    assert store.size(manifest_name(1)) is not None
    assert current(store) is None


def spoil(store, name, change):
    data = store.get(name)
    store.delete(name)
    altered = change(data)
    if altered is not None:
        store.create(name, altered)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (POINTER, lambda _: None),
        (POINTER, lambda data: data[: len(data) // 2]),
        (POINTER, lambda _: b"[]"),
        (POINTER, lambda data: data.replace(b'"version": 2', b'"version": 1')),
        (POINTER, lambda data: data.replace(b'"run_id": "r"', b'"run_id": "q"')),
        (manifest_name(2), lambda _: None),
        (manifest_name(2), lambda data: data[:-20]),
        (manifest_name(2), lambda data: data.replace(b"roads", b"raods")),
    ],
)
def test_a_damaged_state_is_never_taken_for_nothing_there(store, name, change):
    publish(store, nonce="a", content=b"1")
    publish(store, nonce="b", content=b"2")
    spoil(store, name, change)
    with pytest.raises(CorruptError) as caught:
        current(store)
    assert caught.value.exit_code == 6
    assert caught.value.hint


def test_a_lost_pointer_of_a_single_version_is_known_by_its_record(store):
    publish(store, nonce="a", content=b"1")
    store.delete(POINTER)
    with pytest.raises(CorruptError, match="published version 1"):
        current(store)


def test_a_broken_chain_is_named(store):
    for n in b"123":
        publish(store, nonce=chr(n), content=bytes([n]))
    spoil(store, manifest_name(1), lambda data: data.replace(b"roads", b"raods"))
    head = current(store)
    assert head.manifest.version == 3
    with pytest.raises(CorruptError, match=r"v000001\.json is altered"):
        list(chain(store, head))


def test_an_unreadable_intent_is_named(store):
    store.create("_intents/r-1.json", b"{")
    with pytest.raises(CorruptError, match=r"_intents/r-1\.json"):
        write_up_abandoned(store, now=NOW, by="next")


class Publishing(RuleBasedStateMachine):
    """Publishers that are killed, refused, answered late or outrun, against a plain list of what is published."""

    def __init__(self):
        super().__init__()
        self.store = FaultyStore()
        self.published = []  # contents, oldest first
        self.ended = {}  # (run, attempt) -> status that its record must have
        self.waiting = None  # an attempt that has begun and seen a state
        self.count = 0

    def fresh(self):
        self.count += 1
        return f"n{self.count}", b"%d" % self.count

    def expect(self, run, attempt, status):
        """What the record of an attempt must say, if anything is left of the attempt."""
        left = {(each.run_id, each.attempt) for each in [*intents(self.store), *read_records(self.store)]}
        if (run, attempt) in left:
            self.ended[run, attempt] = status

    @rule(run=st.sampled_from("ab"))
    def publishes(self, run):
        nonce, content = self.fresh()
        self.ended[run, next_attempt(self.store, run)] = "published"
        publish(self.store, run, nonce, content)
        self.published.append(content)

    @rule(run=st.sampled_from("ab"), at=st.sampled_from(STEPS))
    def is_killed(self, run, at):
        nonce, content = self.fresh()
        attempt = next_attempt(self.store, run)
        with pytest.raises(KilledError):
            publish(self.store, run, nonce, content, killer(at))
        moved = STEPS.index(at) >= STEPS.index("pointer.after")
        if moved:
            self.published.append(content)
        self.expect(run, attempt, "published" if moved else "abandoned")

    @rule(run=st.sampled_from("ab"), faults=st.lists(st.tuples(st.sampled_from(CALLS), st.sampled_from(WRONGS)), min_size=1, max_size=4))
    def meets_a_bad_store(self, run, faults):
        nonce, content = self.fresh()
        attempt = next_attempt(self.store, run)
        before = current(self.store)
        self.store.faults = [(verb, name, what) for (verb, name), what in faults]
        error = None
        try:
            publish(self.store, run, nonce, content)
        except MerestoneError as fault:
            error = fault
        self.store.faults = []
        moved = current(self.store) != before
        if error is None:
            assert moved, "it said published"
        assert not (moved and isinstance(error, UnknownOutcomeError)), "what has moved can be told"
        self.store.settle()
        if current(self.store) != before and not moved:
            assert isinstance(error, UnknownOutcomeError), "only an unknown outcome may still change"
            moved = True
        if moved:
            self.published.append(content)
        self.expect(run, attempt, "published" if moved else "abandoned")

    @precondition(lambda self: self.waiting is None)
    @rule(run=st.sampled_from("ab"))
    def begins_slowly(self, run):
        nonce, content = self.fresh()
        attempt, parent = start(self.store, run, nonce)
        self.store.create(f"_changes/{run}-{nonce}.parquet", content)
        self.waiting = (attempt, parent, content)

    @precondition(lambda self: self.waiting is not None)
    @rule()
    def ends_slowly(self):
        attempt, parent, content = self.waiting
        overtaken = current(self.store) != parent
        context = pytest.raises(ConflictError) if overtaken else contextlib.nullcontext()
        with context:
            attempt.commit(builder(attempt, parent, content), parent)
        status = "failed" if overtaken else "published"
        attempt.finish(record_of(attempt, status))
        self.ended[attempt.run_id, attempt.number] = status
        if not overtaken:
            self.published.append(content)
        self.waiting = None

    @rule()
    def is_written_up(self):
        alive = [self.waiting[0].intent] if self.waiting else []
        for name in self.store.objects:  # a lease that came late, after its attempt had ended, ends by its time
            if name.endswith(".lease") and name not in {each.lease for each in alive}:
                self.store.store.delete(name)
        write_up_abandoned(self.store, now=NOW, by="next")
        assert list(intents(self.store)) == alive
        found = {(each.run_id, each.attempt): each.status for each in read_records(self.store)}
        assert found == self.ended

    @invariant()
    def readers_see_exactly_what_was_published(self):
        assert contents(self.store) == self.published[::-1]


Publishing.TestCase.settings = settings(
    max_examples=60, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
test_any_history_of_publishers_is_safe = Publishing.TestCase
