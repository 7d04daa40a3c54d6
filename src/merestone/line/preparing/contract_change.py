"""Whether a contract and its stamp may follow what is published: one body a stamp for ever, and no stamp lower than the current one.

Not here: which differences would tear the files of one dataset apart (`contract.breaking`), the lines of the history (`dataset.history`).
"""

from __future__ import annotations

from collections.abc import Iterable

from merestone.contract.body import from_body
from merestone.contract.breaking import breaks
from merestone.contract.contract import Contract
from merestone.contract.stamp import Stamp
from merestone.dataset.manifest import HistoryLine, Manifest
from merestone.errors import StampError, UsageError

_FIELD = "contract_version"
_NEXT = "raise the stamp above {stamp}: PATCH for words, MINOR for clauses"


def is_another(contract: Contract, path: object, last: Manifest | None, versions: Iterable[HistoryLine]) -> bool:
    """Whether the contract is another than the current one; refuses what cannot follow from it.

    Args:
        contract: the agreement of the delivery.
        path: where it was read, for the message.
        last: the current version, None for a first publish.
        versions: every version, newest first; looked at only where the contract is another, since the current one was looked at then.

    Raises:
        StampError: its stamp stands for another body in some version, or is lower than the current one.
        UsageError: it is another MAJOR by its stamp or by what it says.
        CorruptError: the history cannot be read.
    """
    if last is None or contract.digest == last.contract_sha256:
        return last is None
    stamp, current = contract.contract_version, Stamp.parse(last.contract_version)
    if stamp.major != current.major:
        raise UsageError(
            f"contract {stamp} is another MAJOR than {last.contract_version}, which is published here",
            field=_FIELD,
            hint="give the new major its own destination; the old one stays live beside it",
        )
    same = [each for each in versions if Stamp.parse(each.contract_version).version == stamp.version]
    if any(each.contract_sha256 != contract.digest for each in same):
        _refuse_second_body(contract, path, same, current)
    if stamp < current:
        before = f"; to go back to what was published under it: «rollback(DATASET, to={same[0].version})»" if same else ""
        raise StampError(
            f"contract {stamp} is lower than {last.contract_version}, which v{last.version} is published under",
            field=_FIELD,
            hint=_NEXT.format(stamp=current) + before,
        )
    broken = breaks(from_body(last.contract), contract)
    if broken:
        raise UsageError(
            f"contract {stamp} cannot follow {last.contract_version}, which is published here: {'; '.join(broken)}",
            field=_FIELD,
            hint="that is another MAJOR: give it its own destination; the old one stays live beside it",
        )
    return True


def _refuse_second_body(contract: Contract, path: object, same: list[HistoryLine], current: Stamp) -> None:
    """A stamp is major, minor and patch; CRS and resolution are attributes of it. Of several bodies the newest is named."""
    other = next(each for each in same if each.contract_sha256 != contract.digest)
    raise StampError(
        f"{path} differs from the contract {other.contract_version} that v{other.version} was published under, but has the same number",
        field=_FIELD,
        hint=_NEXT.format(stamp=max(contract.contract_version, current)),
    )
