"""Publishes in child processes that are killed (SIGKILL) before or within their nth durable system call, or at any time at all, and
looks at what is left.

Every state that a kill can leave is met once: what one after a call leaves is what one before the next call leaves, and what a process has
written stays although nothing was synced. So the calls are those that make a difference to who comes next; a sync makes none.

Run by test_kill.py as a process of its own: it imports everything, starts no thread, and forks, so that each kill costs a publish only.
Prints one JSON object a line: {"kill", "call", "object", "seen", "after", "problem"}; of kills at random times {"seen", "after", "problem"}.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

from merestone.audit.verify import verify
from merestone.dataset.current import current
from merestone.dataset.record import read_records
from merestone.dataset.version import Dataset
from merestone.line.publish import PublishSettings, publish
from merestone.publication.reader import read_publication, with_source
from merestone.storage import local
from merestone.storage.open import open_store
from merestone.writer.records import intents

CALLS = ("write", "link", "replace", "unlink", "mkdir")  # and open, where it makes the file


def watch(kill, when, trace):
    """Count the store's durable system calls; at the one with number `kill`, die "before" it begins, or a write "within" it."""
    names = {}
    real = {name: getattr(os, name) for name in (*CALLS, "open")}
    count = 0

    def met(name, what):
        nonlocal count
        count += 1
        # What a temporary file will be called is known once it gets its name: the trace holds the last name of the call.
        trace.append((name, what))
        if count == kill and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)

    def opened(path, flags, *args):
        if flags & os.O_CREAT:
            met("open", str(path))
        descriptor = real["open"](path, flags, *args)
        names[descriptor] = str(path)
        return descriptor

    def watched(name):
        def call(*args):
            met(name, names.get(args[0], "") if isinstance(args[0], int) else str(args[-1]))
            if count == kill and when == "within":
                real["write"](args[0], bytes(args[1][: len(args[1]) // 2]))
                os.kill(os.getpid(), signal.SIGKILL)
            return real[name](*args)

        return call

    local.os = type("os", (), {**vars(os), **{name: staticmethod(watched(name)) for name in CALLS}, "open": staticmethod(opened)})


def publish_once(publication, source, kill=0, when="before", report=None, after=None):
    """Publish in a child process, kill it `after` so many seconds. Returns how it ended: 0, 1 for an exception, -9 when it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            trace = []
            watch(kill, when, trace)
            result = publish(with_source(read_publication(publication), source), PublishSettings())
            if report:
                Path(report).write_text(json.dumps({"trace": trace, "status": result.status}), encoding="utf-8")
            code = 0
        except BaseException:  # noqa: BLE001 - the child says what it can, and ends
            traceback.print_exc()
        finally:
            os._exit(code)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def rows(folder):
    table = Dataset(open_store(folder)).to_arrow(columns=["pid", "v"])
    return dict(zip(table.column("pid").to_pylist(), table.column("v").to_pylist(), strict=True))


def look(folder, old, new):
    """Which version readers see: "old", "new", or what is wrong."""
    report = verify(open_store(folder))
    if not report.whole:
        return f"damaged: {report.damages[0]}"
    seen = rows(folder)
    return "old" if seen == old else "new" if seen == new else f"neither: {seen}"


def settled(folder):
    """What is wrong after the run that came next, if anything is."""
    store = open_store(folder)
    if list(intents(store)):
        return "an intent is left"
    head, records = current(store), read_records(store)
    good = {each.version for each in records if each.status == "published"}
    if head is None or head.manifest.version not in good:
        return "the current version has no record that says published"
    begun = {(each.run_id, each.attempt) for each in records}
    if len(begun) != len(records):
        return "two records of one attempt"
    return None


def object_of(trace, kill):
    """The file that a call is about: of a temporary file, the name that it gets or got."""
    name, what = trace[kill - 1]
    named = [(n, Path(target)) for n, (call, target) in enumerate(trace) if call in ("link", "replace")]
    if what.endswith(".tmp") and name in ("open", "write"):
        return next(str(target) for n, target in named if n >= kill - 1 and target.parent == Path(what).parent)
    if name == "unlink":
        return next((str(target) for n, target in reversed(named) if n < kill and target.parent == Path(what).parent), what)
    return what


def tell(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def at_random(publication, folder, base, old, new, source, kills, seed):
    """Kill at times drawn evenly from a little more than a publish takes; up to three dead attempts lie there when the next run begins."""
    chance = random.Random(seed)
    begun = time.monotonic()
    if publish_once(publication, source) != 0:
        raise SystemExit("the undisturbed publish failed")
    whole = time.monotonic() - begun
    done = 0
    while done < kills:
        shutil.rmtree(folder)
        shutil.copytree(base, folder)
        for _ in range(chance.randint(1, 3)):
            ended = publish_once(publication, source, after=chance.uniform(0, 1.1 * whole))
            line = {"ended": ended, "seen": look(folder, old, new), "after": "new", "problem": None}
            if ended not in (0, -signal.SIGKILL):
                line["problem"] = f"ended with {ended}"
            done += ended == -signal.SIGKILL
            tell(line)
        again = publish_once(publication, source)
        problem = f"the next run ended with {again}" if again else settled(folder)
        tell({"ended": 0, "seen": "new", "after": look(folder, old, new), "problem": problem})


def main():
    """Arguments: publication file, dataset folder, old and new rows as JSON, first and next source, and shard and shards, or "random" and
    how many kills.
    """
    publication, folder, old, new, first, source, shard, shards = sys.argv[1:]
    old, new = json.loads(old), json.loads(new)
    if publish_once(publication, first) != 0:
        raise SystemExit("the first publish failed")
    base = folder + ".base"
    shutil.copytree(folder, base)
    if shard == "random":
        at_random(publication, folder, base, old, new, source, int(shards), seed=int(shards))
        return
    report = folder + ".trace"
    if publish_once(publication, source, report=report) != 0:
        raise SystemExit("the undisturbed publish failed")
    trace = json.loads(Path(report).read_text(encoding="utf-8"))["trace"]
    plan = [(n + 1, when) for n, (call, _) in enumerate(trace) for when in ("before", "within") if when == "before" or call == "write"]
    for n, when in plan[int(shard) :: int(shards)]:
        shutil.rmtree(folder)
        shutil.copytree(base, folder)
        ended = publish_once(publication, source, n, when)
        line = {"kill": n, "when": when, "call": trace[n - 1][0], "object": os.path.relpath(object_of(trace, n), folder), "problem": None}
        line["seen"] = look(folder, old, new)
        again = publish_once(publication, source)
        line["after"] = look(folder, old, new)
        if ended != -signal.SIGKILL:
            line["problem"] = f"ended with {ended}, not by the kill"
        elif again != 0:
            line["problem"] = f"the next run ended with {again}"
        else:
            line["problem"] = settled(folder)
        tell(line)


if __name__ == "__main__":
    main()
