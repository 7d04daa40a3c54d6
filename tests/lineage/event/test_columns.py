"""Events of other minor versions, in columns."""

import pyarrow as pa

from lineage.events import event, table
from merestone.lineage.event import columns
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA


def test_files_of_other_minor_versions_are_read_in_the_compiled_schema():
    rows = table([event("a", change_class="moved")])
    assert columns.conform(rows.drop_columns(["change_class", "contract_version"])).column("change_class").to_pylist() == [None]
    assert columns.conform(rows.append_column("later", pa.array(["x"]))).schema.equals(LINEAGE_ARROW_SCHEMA)
