"""Tokens, the word of a person who lets a guard's stop pass: given out, held against a run, and why one does not fit.

Not here: what a token is bound to (`change.guards`), the guards (`line.judging`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from merestone.change import guards
from merestone.dataset.log import recent_records
from merestone.dataset.record import read_records
from merestone.line import environment
from merestone.line.run import Run
from merestone.results.finding import Finding

DAYS = 7
"""How long a token holds."""


def confirmed(run: Run, stops: list[Finding]) -> bool:
    """Whether the run came with the token of exactly this stop; notes who confirmed."""
    given = run.settings.confirm
    if given is None:
        return False
    now = environment.now()
    for record in recent_records(run.store, run.head) if run.head else read_records(run.store):
        for issued in record.confirmations:
            if guards.confirms(
                given,
                issued,
                parent=run.parent_sha256,
                delivery=run.delivery.set_digest,
                guards=guards.fired(stops),
                now_utc=environment.stamp(now),
                oldest_utc=environment.stamp(now - timedelta(days=DAYS)),
            ):
                run.confirmations = [
                    {
                        "token": given,
                        "guards": guards.fired(stops),
                        "issued_utc": issued["issued_utc"],
                        "used_utc": environment.stamp(now),
                        "by": environment.who(),
                    }
                ]
                return True
    run.doubt = _unfit(run, given, guards.fired(stops), environment.stamp(now - timedelta(days=DAYS)))
    return False


def _unfit(run: Run, given: str, fired: list[str], oldest: str) -> str:
    """Why the token that came with the run does not fit; whatever run of the dataset gave it out."""
    gave = [(record, each) for record in read_records(run.store) for each in record.confirmations if each.get("token") == given]
    record, issued = next(((one, each) for one, each in reversed(gave) if "used_utc" not in each), (None, None))
    return guards.unfit(
        given,
        issued,
        delivered=record is not None and record.delivery.get("set_digest") == run.delivery.set_digest,
        against=record.parent_version if record is not None else None,
        version=run.parent_version,
        guards=fired,
        oldest_utc=oldest,
    )


def expiry(issued: str) -> str:
    """Until when a token holds that was given out then, UTC."""
    return environment.stamp(datetime.fromisoformat(issued) + timedelta(days=DAYS))


def token_for(run: Run, fired: list[str]) -> tuple[str, str]:
    """The token that confirms a stop, and when it was given out: that of the last run that stopped alike, for as long as half of its days are left."""
    now = environment.now()
    issued = environment.stamp(now)
    since = environment.stamp(now - timedelta(days=DAYS / 2))
    for record in reversed(recent_records(run.store, run.head) if run.head else read_records(run.store)):
        for each in record.confirmations:
            when = str(each.get("issued_utc", ""))
            again = guards.token(run.parent_sha256, run.delivery.set_digest, fired, when)
            if since <= when <= issued and each.get("token") == again:
                return again, when
    return guards.token(run.parent_sha256, run.delivery.set_digest, fired, issued), issued
