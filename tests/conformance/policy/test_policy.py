"""Each row of the table (`rows.py`), each worker class."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.policy.cases import Provoked
from tests.conformance.policy.rows import ROWS, Row
from tests.conformance.policy.stage import ROOM, SUBJECTS, Kind, elapse
from tests.harness import each, until
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("its classes have policies of their own")


def cells() -> Iterator[object]:
    for row in ROWS:
        for subject in row.on:
            (parameter,) = each(subject)
            why = row.defects.get(subject)
            marks = [*parameter.marks, *([pytest.mark.xfail(strict=True, reason=why)] if why else [])]
            yield pytest.param(row, subject, marks=marks, id=f"{row.name}-{subject}")


@pytest.mark.parametrize(("row", "subject"), list(cells()))
def test_policy(provoked: Provoked, row: Row, subject: str) -> None:
    row.of(subject)(provoked.outcome(subject, row.case))


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
