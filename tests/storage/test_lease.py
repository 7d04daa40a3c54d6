"""Leases: one holder at a time, dead holders are found out, and clocks that differ do no harm."""

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from merestone.storage import lease
from merestone.storage.lease import SECONDS, SKEW, LeaseTerms, Owner, is_held, take, this_process
from merestone.storage.local import LocalStore
from stores import FaultyStore, fresh

ROOT = Path(__file__).parents[2]
ELSEWHERE = Owner("another machine", "7/1")


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    return LocalStore(tmp_path / "ds") if request.param == "local" else fresh()


def of_another(store, name="l", ends=1000.0):
    """A lease of a process of another machine."""
    store.create(name, LeaseTerms(ELSEWHERE, ends, 4, "x").to_bytes())


def test_one_holds_it_and_gives_it_up(store):
    mine = take(store, "l")
    assert is_held(store, "l")
    assert take(store, "l") is None
    mine.release()
    mine.release()
    assert not is_held(store, "l")
    assert store.size("l") is None
    assert not mine.renew()
    assert take(store, "l") is not None


def test_a_lease_of_another_machine_stands_until_its_time_and_the_difference_of_clocks_are_over(store):
    of_another(store)
    for now, stands in ((0, True), (1000, True), (1000 + SKEW, True), (1000 + SKEW + 1, False)):
        assert is_held(store, "l", clock=lambda now=now: now) is stands
    assert take(store, "l", clock=lambda: 1000 + SKEW) is None
    mine = take(store, "l", clock=lambda: 1000 + SKEW + 1)
    assert mine.number == 5, "the number grows with every holder"


def test_a_renewal_lets_it_last(store):
    now = [0.0]
    mine = take(store, "l", clock=lambda: now[0])
    other = LeaseTerms.from_bytes(store.get("l"))
    assert other.ends == SECONDS
    now[0] = 60
    assert mine.renew()
    assert LeaseTerms.from_bytes(store.get("l")) == replace(other, ends=60 + SECONDS)


def test_a_holder_that_was_taken_for_dead_finds_out(store):
    mine = take(store, "l")
    store.swap("l", store.get("l"), LeaseTerms(ELSEWHERE, time.time() + 100, 2, "y").to_bytes())
    assert not mine.renew()
    mine.release()
    assert LeaseTerms.from_bytes(store.get("l")).owner == ELSEWHERE, "what another holds is not given up"


def test_it_is_renewed_while_it_is_held_and_not_when_it_is_let_go(store):
    mine = take(store, "l", seconds=0.15)
    first = LeaseTerms.from_bytes(store.get("l")).ends
    deadline = time.monotonic() + 20
    while LeaseTerms.from_bytes(store.get("l")).ends == first:
        assert time.monotonic() < deadline, "it was never renewed"
        time.sleep(0.02)
    thread = next(each for each in threading.enumerate() if each.name == "lease l")
    del mine
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()


def test_a_killed_holder_of_this_machine_is_dead_at_once(tmp_path):
    code = """
        import sys, time
        from merestone.storage.lease import take
        from merestone.storage.local import LocalStore
        held = take(LocalStore(sys.argv[1]), "l")
        print("held", flush=True)
        time.sleep(60)
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    other = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], env=env, stdout=subprocess.PIPE, text=True)
    store = LocalStore(tmp_path)
    try:
        assert other.stdout.readline() == "held\n"
        assert is_held(store, "l")
        assert take(store, "l") is None
    finally:
        os.kill(other.pid, signal.SIGKILL)
        other.communicate()
    assert not is_held(store, "l")
    assert take(store, "l").number == 2


def test_a_process_that_took_the_number_of_a_dead_one_is_not_its_owner():
    me = this_process()
    assert not me.is_gone()
    if sys.platform == "linux":
        assert replace(me, process=f"{os.getpid()}/1").is_gone()
    assert replace(me, process="4194304/1").is_gone()
    assert not ELSEWHERE.is_gone()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep no zombies in /proc")
def test_a_zombie_is_gone():
    child = subprocess.Popen([sys.executable, "-c", ""])
    started = lease._process(child.pid)
    deadline = time.monotonic() + 20
    while not (gone := Owner(this_process().machine, started or f"{child.pid}/").is_gone()) and time.monotonic() < deadline:
        time.sleep(0.02)
    child.wait()
    assert gone


@pytest.mark.parametrize("what", ["lose", "drop", "late", "deny"])
def test_an_answer_that_is_lost_ends_in_one_holder(what):
    store = FaultyStore()
    store.faults = [("create", "l", what)]
    mine = take(store, "l")
    store.settle()
    assert mine is not None
    assert LeaseTerms.from_bytes(store.get("l")).mark == mine._terms.mark
    assert take(store, "l") is None
    store.faults = [("swap", "l", "lose")]
    assert mine.renew()


def test_of_many_that_take_one_gets_it(store):
    won = []
    start = threading.Barrier(8)

    def run():
        start.wait()
        won.append(take(store, "l"))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(each is not None for each in won) == 1


@pytest.mark.parametrize("data", [b"", b"torn", b"[]", b"{}", json.dumps({"owner": 1}).encode()])
def test_what_is_no_lease_is_held_by_nobody(store, data):
    store.create("l", data)
    assert not is_held(store, "l")
    assert take(store, "l").number == 1


def test_a_store_that_cannot_be_reached_ends_a_lease_by_its_time():
    store = FaultyStore()
    mine = take(store, "l")
    store.faults = [("get", "l", "refuse")]
    mine.release()
    assert is_held(store.store, "l")
