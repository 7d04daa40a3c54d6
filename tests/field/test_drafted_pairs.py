"""Drafts of two real exports publish both: under the steward's key, with the counts of the judgement, stopped only where much changed."""

from __future__ import annotations

import pytest

from field.drafted_pairs import PAIRS, run

pytestmark = pytest.mark.field
VOLATILE = {"cam_centerlines": ("GlobalID",)}
"""What each export makes anew; anything else that was drafted as volatile would be content."""


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_a_draft_of_two_exports_publishes_both(pair, data, tmp_path):
    out = run(pair, data, tmp_path)
    if "key" in out.asked:
        assert pair.newer in pair.unclean, out.said
        assert f"can be the key: {pair.key} (" in out.said, "the nearest to a clean key is named first"
    assert out.key == (pair.key,)
    allowed = VOLATILE.get(pair.older.split("/")[0], ()) if "key" not in out.asked else None
    assert allowed is None or out.volatile == allowed
    for path, night in zip((pair.older, pair.newer), out.nights, strict=True):
        refused = night[0] == "1" and night != "1 guard"
        assert refused == (path in pair.unclean), f"{path}: {night}"
    assert set(out.asked) <= {"key", "extent", "rejects"}
