"""Each row of the table (`rows.py`), each worker class: a test for all rows of a case under a class."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.policy.cases import Provoked
from tests.conformance.policy.rows import ROWS, Row
from tests.conformance.policy.stage import ROOM, SUBJECTS, Kind
from tests.harness import each, elapse, until
from tests.harness.cases import try_each
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("its classes have policies of their own")


def cells() -> Iterator[object]:
    """What is expected to fail has a test of its own."""
    together: dict[tuple[str, str], list[Row]] = {}
    for row in ROWS:
        for subject in row.on:
            if subject in row.defects:
                yield _cell(row.name, subject, [row], pytest.mark.xfail(strict=True, reason=row.defects[subject]))
            else:
                together.setdefault((row.case, subject), []).append(row)
    for (case, subject), rows in together.items():
        yield _cell(case, subject, rows)


def _cell(name: str, subject: str, rows: list[Row], *marks: pytest.MarkDecorator) -> object:
    (parameter,) = each(subject)
    return pytest.param(rows, subject, marks=[*parameter.marks, *marks], id=f"{name}-{subject}")


@pytest.mark.parametrize(("rows", "subject"), list(cells()))
def test_policy_row_holds_for_the_worker_class(provoked: Provoked, rows: list[Row], subject: str) -> None:
    try_each(lambda row: row.of(subject)(provoked.outcome(subject, row.case)), {row.name: row for row in rows})


@pytest.mark.parametrize("subject", each(*SUBJECTS))
def test_every_place_is_given_back_once(provoked: Provoked, subject: str) -> None:
    """After all endings: as many requests run at once as before the first, and not one more."""
    provoked.settle(subject)
    stage = provoked.stage(subject, Kind.MAIN)
    room = 1 if stage.subject.is_single else ROOM
    tags = [stage.tag() for _ in range(room + 1)]
    wires = [stage.connect() for _ in tags]
    try:
        with stage.gate() as gate:
            for tag, wire in zip(tags, wires, strict=True):
                wire.send(request("GET", f"/works/{tag}?{gate}"))

            def inside() -> int:
                return sum(stage.was_told(tag, "in") for tag in tags)

            until(lambda: inside() >= room, f"{room} run at once")
            elapse(0.1)
            assert inside() == room
        for wire in wires:
            assert wire.reply().body == b"worked"
    finally:
        for wire in wires:
            wire.close()
