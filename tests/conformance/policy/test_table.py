"""The table is complete: each row has a test or a reason for each subject, and each worker class is a subject."""

from __future__ import annotations

from itertools import combinations

from tricorn.workers.registry import AUTO, NAMES

from tests.conformance.policy.cases import CASES, SOCKET_CASES
from tests.conformance.policy.rows import ROWS, Row
from tests.conformance.policy.stage import SUBJECTS
from tests.harness.cases import with_each


def test_every_worker_class_is_a_subject() -> None:
    assert {subject.worker_class for subject in SUBJECTS.values()} == set(NAMES) - {AUTO}


@with_each("row", {row.name: row for row in ROWS})
def test_a_row_has_a_test_or_a_reason_for_each_subject(row: Row) -> None:
    assert not set(row.on) & set(row.absent), "both"
    missing = set(SUBJECTS) - set(row.on) - set(row.absent)
    assert not missing, "neither"
    assert set(row.defects) <= set(row.on), "a defect of what is not tested"
    for reason in (*row.absent.values(), *row.defects.values()):
        assert len(reason.split()) > 5, f"no sentence: {reason!r}"
    for subject in row.on:
        table = SOCKET_CASES if subject == "asgi-websocket" else CASES
        assert row.case in table, f"nothing provokes it for {subject}"


def test_rows_have_names_of_their_own() -> None:
    same = [one.name for one, other in combinations(ROWS, 2) if one.name == other.name]
    assert not same
