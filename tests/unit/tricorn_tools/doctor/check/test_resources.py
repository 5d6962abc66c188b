"""Workers against processors, connections against descriptors."""

from __future__ import annotations

import math

import pytest
from tricorn_tools.doctor.check.finding import Severity
from tricorn_tools.doctor.check.resources import Machine, examine

from tests.harness.needs import needs
from tests.unit.tricorn_tools.doctor.check.scenes import scene


def found(alias: str, machine: Machine, **values: object) -> list[tuple[str, Severity]]:
    return [(each.id, each.severity) for each in examine(scene(alias, **values), machine)]


def machine(*, counted: int = 4, cores: int = 4, quota: float | None = None, files: int = 65_536) -> Machine:
    return Machine(counted, cores, quota, files)


def test_nothing_to_say() -> None:
    assert found("sync", machine(), workers=9) == []


def test_more_workers_than_processors_can_run() -> None:
    (finding,) = examine(scene("sync", workers=10), machine())
    assert (finding.id, finding.severity) == ("processors", Severity.WARNING)
    assert finding.text.startswith("10 workers (from a test) share 4 CPUs: workers that")
    assert finding.cure.startswith("Start up to 9 workers")


def test_a_quota_is_what_counts() -> None:
    note, warning = examine(scene("asgi", workers=8), machine(counted=64, cores=64, quota=1.5))
    assert note.severity is Severity.NOTE
    assert "may use 1.5 CPUs (of 64, limited by the cgroup), but os.cpu_count() returns 64" in note.text
    assert warning.text.startswith("8 workers (from a test) share 1.5 CPUs (of 64, limited by the cgroup)")
    assert warning.cure.startswith("Start 2 workers")


def test_processors_that_it_may_not_run_on() -> None:
    assert found("sync", machine(counted=8, cores=2), workers=5) == [("processors", Severity.NOTE)]
    assert math.isclose(machine(cores=2, quota=4).processors, 2)


@pytest.mark.parametrize(
    ("files", "severity"),
    [(1063, Severity.ERROR), (1064, Severity.WARNING), (2063, Severity.WARNING), (2064, None)],
)
def test_descriptors_for_clients_and_for_what_their_requests_open(files: int, severity: Severity | None) -> None:
    expected = [] if severity is None else [("descriptors", severity)]
    assert found("asgi", machine(files=files), worker_connections=1000) == expected


def test_a_worker_with_one_request_needs_few() -> None:
    assert found("sync", machine(files=100)) == []


def test_greenlets_are_counted_as_connections() -> None:
    needs("gevent")
    assert found("gevent", machine(files=256), worker_connections=200) == [("descriptors", Severity.ERROR)]


def test_this_machine_can_be_looked_at() -> None:
    here = Machine.here()
    assert 0 < here.processors <= here.counted
    assert here.files > 0
