"""Exports in memory, for the tests of drafts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import shapely

from merestone.drafts.infer import Inference
from merestone.drafts.keys import joining_key
from merestone.drafts.previous import both, compared_as, exports_of, measured
from merestone.source.port import Delivery, GeometryColumn

SPOTS = np.round(10 + np.random.default_rng(7).random((5_000, 2)), 5)


class Export:
    """Columns and points as a delivery; see `merestone.source.port.Source`."""

    def __init__(self, columns, places=None, *, crs="EPSG:4326", batch_rows=70, fid=None):
        rows = len(next(iter(columns.values())))
        spots = SPOTS[:rows] if places is None else SPOTS[places]
        self.table = pa.table({**columns, "geom": pa.array(shapely.to_wkb(shapely.points(spots)), pa.binary())})
        self.batch_rows = batch_rows
        self.delivery = Delivery("export.gpkg", "GPKG", rows, self.table.schema, GeometryColumn("geom", crs), fid_column=fid)

    def batches(self, batch_rows=0):
        return iter(self.table.to_batches(max_chunksize=batch_rows or self.batch_rows))

    def late_findings(self):
        return ()

    def facts(self, asked=()):
        inference = Inference(self.delivery, asked=asked)
        for each in self.batches():
            inference.add(each)
        return inference.result()


def held_together(newer, older, asked=()):
    """What holds in both, and the two ready to be judged."""
    facts = newer.facts(asked), older.facts(asked)
    shared = both(*facts, (newer.delivery, older.delivery), asked)
    names = [each.name for each in shared.inferred.columns if facts[1].column(each.name) is not None]
    return shared, exports_of((newer, older), facts, names, compared_as(*facts))


def key_of(newer, older):
    shared, exports = held_together(newer, older)
    return joining_key(shared.inferred, exports, (newer, older))


def loose_of(newer, older):
    shared, exports = held_together(newer, older)
    chosen = joining_key(shared.inferred, exports, (newer, older))
    return measured(shared.inferred, chosen.columns, exports, chosen.dealt_out, newer.delivery.fid_column)
