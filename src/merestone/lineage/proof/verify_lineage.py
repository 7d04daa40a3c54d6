"""Verify a proof or an unpacked evidence folder of Merestone with nothing but hashes; this file needs no Merestone.

    python verify_lineage.py PROOF.json [TRUSTED_ROOT]      the events in the proof are part of the run with that Merkle root
    python verify_lineage.py FOLDER [TRUSTED_SHA256]        an unpacked evidence file is whole and hangs together

TRUSTED_ROOT or TRUSTED_SHA256 is what you know from elsewhere: a mail, a notary, a printed page. The sha256 of the newest manifest answers for
contract, manifests, runs and roots; that of evidence.json for every file, ISO records and verdicts too. Exit code 0: verified; 1: not.
"""

# ruff: noqa: T201 - a script that people run and read

from __future__ import annotations

import hashlib
import json
import struct
import sys
from pathlib import Path

FIELDS = [
    "event_id",
    "run_id",
    "sequence",
    "event_time_utc",
    "stage",
    "event_type",
    "feature_id",
    "source_crs",
    "target_crs",
    "outcome",
    "strategy_index",
    "accuracy_m",
    "rejection_reason",
    "tool_version",
    "audit_tag",
    "change_class",
    "from_partition",
    "to_partition",
    "contract_version",
]


def check(true: object, message: str) -> None:
    """Stop at the first thing that is not as it should be."""
    if not true:
        sys.exit(f"NOT VERIFIED: {message}")


def digest(data: bytes, size: int = 32) -> bytes:
    """The hash of the tree."""
    return hashlib.blake2b(data, digest_size=size).digest()


def climb(node: bytes, steps: list[dict[str, str]]) -> bytes:
    """From a leaf to its root."""
    for step in steps:
        other = bytes.fromhex(step["hash"])
        node = digest(b"\x01" + (other + node if step["side"] == "left" else node + other))
    return node


def root_of(nodes: list[bytes]) -> bytes:
    """The root over leaves (RFC 6962)."""
    while len(nodes) > 1:
        nodes = [digest(b"\x01" + b"".join(nodes[at : at + 2])) if at + 1 < len(nodes) else nodes[at] for at in range(0, len(nodes), 2)]
    return nodes[0] if nodes else digest(b"")


def verify_proof(path: Path, trusted: str | None) -> None:
    """Each event: its id, its leaf, the way to its part's root, and from there to the run's."""
    proof = json.loads(path.read_bytes())
    check(proof["proofs"], "the file proves nothing")
    for each in proof["proofs"]:
        event = each["event"]
        check(set(event) <= set(FIELDS), f"unknown fields {sorted(set(event) - set(FIELDS))}: use a newer verifier")
        identity = "\x1f".join(event[name] for name in ("run_id", "stage", "feature_id", "event_type"))
        check(digest(identity.encode(), 16).hex() == event["event_id"], f"event id {event['event_id']} is not that of its event")
        check((event["feature_id"], event["run_id"]) == (proof["feature_id"], proof["run_id"]), "an event of another feature or run")
        texts = [(name, event[name].encode()) for name in FIELDS if name in event]
        leaf = digest(b"\x00" + b"".join(b"%s:%d:%s," % (name.encode(), len(text), text) for name, text in texts))
        root = climb(digest(b"\x00" + climb(leaf, each["in_part"])), each["in_run"])
        check(root.hex() == proof["root"] == (trusted or proof["root"]), f"the root is {root.hex()}")
        accuracy = f", accuracy {struct.unpack('<d', struct.pack('<q', int(event['accuracy_m'])))[0]} m" if "accuracy_m" in event else ""
        print(f"  {event['stage']} {event['event_type']} {event['outcome']}{accuracy}: {event.get('rejection_reason', 'no remark')}")
    print(f"VERIFIED: {len(proof['proofs'])} events of {proof['feature_id']} are part of run {proof['run_id']}, root {proof['root']}")


def verify_folder(folder: Path, trusted: str | None) -> None:
    """Checksums of all files, the chains of manifests and of runs with their roots, and the contract that they name."""
    files = {each.relative_to(folder).as_posix(): each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    whole, listed = sums.pop("evidence.json", ""), json.loads(files.get("evidence.json", b'{"files": {}}'))["files"]
    for name in sorted(sums.keys() | listed.keys()):
        check(sums.get(name) == listed.get(name), f"{name} is altered, missing or not in the list")
    names = sorted(name for name in listed if name.startswith("manifests/"))
    check(
        names and trusted in (None, sums[names[-1]], whole),
        f"the newest manifest is {sums[names[-1]] if names else 'none'}, evidence.json is {whole}",
    )
    manifests = [json.loads(files[name]) for name in names]
    for older, newer in zip([None, *map(sums.get, names)], manifests, strict=False):
        check(newer["parent_sha256"] == older, f"the chain of manifests is broken before version {newer['version']}")
    check(json.loads(files["contract.json"]) == manifests[-1]["contract"], "contract.json is not that of the newest manifest")
    runs = {name: json.loads(files[name]) for name in listed if name.startswith("runs/lineage/")}
    for name, run in runs.items():
        said = json.dumps({key: run[key] for key in run if key != "root"}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        leaves = [digest(b"\x00" + each) for each in (*(bytes.fromhex(part["root"]) for part in run["parts"]), said.encode())]
        check(root_of(leaves).hex() == run["root"], f"{name}: its root is not the root over its parts and itself")
    for who, lineage in [
        *((f"version {each['version']}", each["lineage"]) for each in manifests),
        *((f"{name}: the one before", head) for name, each in runs.items() for head in each["heads"]),
    ]:
        name = "runs/lineage/" + lineage["run_manifest"].rpartition("/")[2] if lineage else ""
        check(not lineage or sums.get(name) == lineage["sha256"], f"the run of {who} is another one")
        check(not lineage or runs[name]["root"] == lineage["root"], f"the root of {who} is another one")
    check(
        {each["root"] for each in json.loads(files["roots.json"])["runs"]} == {each["root"] for each in runs.values()},
        "roots.json holds other roots",
    )
    print(
        f"VERIFIED: {len(listed)} files, {len(manifests)} versions in a chain, {len(runs)} runs; newest manifest {sums[names[-1]]}, evidence.json {whole}"
    )


if __name__ == "__main__":
    check(len(sys.argv) in (2, 3), "usage: verify_lineage.py PROOF.json|FOLDER [TRUSTED]")
    target = Path(sys.argv[1])
    (verify_folder if target.is_dir() else verify_proof)(target, sys.argv[2] if len(sys.argv) == 3 else None)
