from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from merestone.gate.findings import FindingLines, FindingTally, findings_table, name_rows, reasons, rejected
from merestone.results.finding import RowFaults, Sample
from merestone.rules import catalogue


def faults(rows, observed, rule="enum", severity="error", field="use"):
    at = np.array(rows, dtype=np.int64)
    return RowFaults("semantics", field, rule, severity, "one of a", at, pa.array(observed, pa.string()), "repair it")


def tallied(*batches):
    tally = FindingTally()
    first = 1
    for size, each in batches:
        rows = np.arange(first, first + size)
        tally.add(each, rows=rows, ids=pa.array([f"k{row}" for row in rows]), bounds=np.tile([0.0, 0.0, 2.0, 4.0], (size, 1)))
        first += size
    return tally


def test_batches_add_up_and_rows_count_on():
    findings = tallied((4, [faults([1], ["x"])]), (4, [faults([0, 3], ["x", "y"])])).findings()
    assert len(findings) == 1
    assert findings[0].count == 3
    assert [(sample.id, sample.row, sample.x, sample.y) for sample in findings[0].features] == [
        ("k2", 2, 1.0, 2.0),
        ("k5", 5, 1.0, 2.0),
        ("k8", 8, 1.0, 2.0),
    ]
    assert findings[0].observed == "x (rows k2 and k5), y (row k8)"
    assert findings[0].remedy == "repair it"


def test_counts_are_complete_and_samples_are_twenty():
    findings = tallied((1000, [faults(range(1000), ["x"] * 990 + ["y"] * 10)]), (1000, [faults(range(1000), ["x"] * 1000)])).findings()
    assert findings[0].count == 2000
    assert len(findings[0].features) == 20
    assert findings[0].observed == "x in 1,990 rows, y in 10 rows, first in row k1"


def test_many_different_values_are_named_in_part():
    findings = tallied((3000, [faults(range(3000), [f"v{n}" for n in range(3000)])])).findings()
    assert findings[0].observed == (
        "v0 in 1 row, v1 in 1 row, v2 in 1 row, v3 in 1 row, v4 in 1 row and 995 or more other values, first in row k1"
    )


def test_errors_come_before_warnings():
    tally = tallied((2, [faults([0], ["w"], severity="warning"), faults([1], ["e"])]))
    assert [each.severity for each in tally.findings()] == ["error", "warning"]


def test_rows_without_a_key_are_named_by_their_number():
    tally = FindingTally()
    tally.add([faults([0, 2], [None, None], rule="null_convention")], rows=np.array([11, 12, 13]))
    assert tally.findings()[0].observed == "null in 2 rows (rows 11 and 13 of the file)"


def test_an_empty_tally_is_false_and_empty_faults_leave_it_so():
    tally = FindingTally()
    tally.add([faults([], [])], rows=np.array([1]))
    assert not tally
    assert tally.findings() == ()


def test_numeric_keys_are_not_taken_for_row_numbers():
    assert name_rows([Sample("7", 3), Sample("9", 4)], 2) == "rows with key 7 and 9"
    assert name_rows([Sample("b", 2)], 1) == "row b"


@pytest.mark.parametrize(
    ("key", "said"), [("49", "key 49: ring self-intersection"), ("b7", "b7 ring self-intersection"), (None, "row 1 ring")]
)
def test_a_numeric_key_before_what_is_seen_is_no_count_of_it(key, said):
    tally = FindingTally()
    fault = catalogue.VALIDITY.faults("geometry", np.array([0]), pa.array(["ring self-intersection"]))
    tally.add([fault], rows=np.array([1]), ids=pa.array([key], pa.string()))
    assert said in tally.findings()[0].observed


def test_only_errors_reject_and_reasons_hold_every_fault_of_a_row():
    both = [faults([0, 2], ["x", None]), faults([2], ["y"], rule="pattern", field="code"), faults([1], ["w"], severity="warning")]
    assert rejected(both, 4).tolist() == [True, False, True, False]
    assert reasons(both, 4).to_pylist() == [
        "use enum: x, expected one of a",
        "use enum: w, expected one of a",
        "use enum: null, expected one of a; code pattern: y, expected one of a",
        None,
    ]
    assert reasons(both, 4, severity="warning").to_pylist() == [None, "use enum: w, expected one of a", None, None]
    assert reasons([], 2).to_pylist() == [None, None]


def test_the_findings_table_has_a_line_per_fault():
    lines = findings_table(
        [faults([0, 2], ["x", "z"]), faults([2], ["y"], field="code")],
        rows=np.array([5, 6, 7]),
        ids=pa.array(["a", "b", "c"]),
        keys=pa.array([b"a", b"b", b"c"]),
        held=np.array([False, False, True]),
    )
    assert lines.table.schema == FindingLines.schema
    assert lines.table.select(["feature_id", "row", "field", "observed", "held"]).to_pylist() == [
        {"feature_id": "a", "row": 5, "field": "use", "observed": "x", "held": False},
        {"feature_id": "c", "row": 7, "field": "use", "observed": "z", "held": True},
        {"feature_id": "c", "row": 7, "field": "code", "observed": "y", "held": True},
    ]
    assert len(findings_table([], rows=np.array([], dtype=np.int64), ids=None, keys=None)) == 0
