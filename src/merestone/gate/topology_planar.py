"""A planar coverage: which polygons overlap, where ground is left uncovered between them, and where neighbours' borders do not match.

Not here: words (`topology`), the steps (`topology_borders`, `topology_faces`, `topology_cover`, `topology_gaps`), the validity of a single
polygon (`feature`).

How many polygons cover a point (its depth) changes only where it crosses an edge that is not cancelled by an equal edge of a neighbour in
the other direction. So all depths are decided by the edges that are left, and in a good coverage those are few:

1. Edges are grouped by their ends; a pair in opposite directions cancels.
2. Edges that are left are compared with those near them. Where a vertex lies on an edge, the edge is split there; pieces that then cancel
   were a border with different vertices (`mismatched_edge`). Two in one direction, or a proper crossing, are an overlap.
3. Edges that are left form cycles, each around one face. No other polygon may cover the middle of an edge of a cycle: it would cover the
   face, and with it some ground of every polygon of the cycle.
4. A cycle that runs clockwise around a face that nothing covers is a gap.

The steps 1 to 3 find a polygon of every region that is covered twice: on its rim the depth falls to 1 or 0. Where it falls by an edge that
crosses or doubles another, step 2 has its owner; otherwise the face beyond is covered, and step 3 has it. All pairs that share ground
with a polygon found are then looked up until none is left; the count is complete.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from merestone.gate.topology_borders import noded, outline, uncancelled
from merestone.gate.topology_cover import Cover, overlaps_of
from merestone.gate.topology_edges import Edges, Ints, edges_of, joined
from merestone.gate.topology_faces import Chain
from merestone.gate.topology_gaps import gaps_of
from merestone.gate.topology_pairs import Pairs


@dataclass(frozen=True, slots=True)
class Planar:
    """What is wrong with a coverage; sizes are areas of overlaps and gaps, and lengths of borders that do not match."""

    overlaps: Pairs
    gaps: Pairs
    mismatches: Pairs


def check_planar(wkb: pa.Array | pa.ChunkedArray, precision: int, *, gap_width: float | None = None, tolerance: float = 0.0) -> Planar:
    """Judge a coverage.

    Args:
        wkb: pyarrow binary array of valid polygons in canonical form; other geometries have no part in it.
        precision: decimals of the grid.
        gap_width: in units of the CRS: only gaps into which no circle of this diameter fits are faults, and open strips between two
            features that are narrower are, too. None: all ground that polygons enclose and none covers is a gap.
        tolerance: in units of the CRS: overlaps and gaps into which no circle of this diameter fits are none, and borders need not share
            their vertices.
    """
    scale = 10.0**precision
    border, cover = noded(outline(wkb, precision)), Cover(wkb, precision)
    suspects = np.concatenate([border.crossing, border.doubled])
    chain = Chain.of(border.edges)
    inside = chain.covered(cover, np.unique(suspects))
    overlaps = overlaps_of(cover, np.unique(np.concatenate([suspects, inside])), tolerance * scale)
    spoilt = np.unique(np.concatenate([suspects, inside, overlaps.one, overlaps.other]))
    gaps = gaps_of(chain, cover, spoilt, None if gap_width is None else gap_width * scale, tolerance * scale)
    return Planar(overlaps, gaps, Pairs.none() if tolerance > 0 else _mismatches(wkb, precision, border.mismatches, cover, spoilt))


def _mismatches(wkb: pa.Array | pa.ChunkedArray, precision: int, found: Pairs, cover: Cover, spoilt: Ints) -> Pairs:
    """Borders that do not match. Where polygons overlap, step 1 has cancelled edges that lie along a third's: theirs are compared without it."""
    if not len(spoilt):
        return found
    near = np.unique(cover.in_boxes(cover.boxes_of(spoilt))[1])
    some = edges_of(wkb.take(pa.array(near)), precision, areas=True)
    again = noded(Edges(some.x0, some.y0, some.x1, some.y1, near[some.owner], some.line)).mismatches
    ours, theirs = (np.isin(each.one, spoilt) | np.isin(each.other, spoilt) for each in (again, found))
    return Pairs.joined([found.some(~theirs), again.some(ours)])


def boundary_changes(before: pa.Array, after: pa.Array, precision: int) -> Edges:
    """The edges by which the outline of what some polygons cover together changes when they come in place of others.

    None: equal outlines leave every gap as it was.

    Args:
        before: pyarrow binary array of polygons in canonical form.
        after: those in their place.
        precision: decimals of the grid.
    """
    old, new = edges_of(before, precision, areas=True), edges_of(after, precision, areas=True)
    lines = int(new.line.max(initial=-1)) + 1
    # Rows and rings before and after have nothing in common.
    both = joined([new, Edges(old.x1, old.y1, old.x0, old.y0, ~old.owner, old.line + lines)])
    return noded(both.take(uncancelled(both))).edges  # a vertex on a straight outline does not change it
