"""What must hold after a storm, whatever the weather was."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.harness import proc, until
from tests.harness.marked import Outcomes, calls, ran
from tests.harness.molds import Molded
from tests.harness.site import rests
from tests.harness.wire import request
from tests.storms.scene import Scene, capacity, settled

GAUGES = ("queued", "body_bytes")
SLACK = 8
"""Descriptors that an interpreter opens when it first needs them (a random source, the file of a late import)."""
OF_ARBITER = 3
"""Descriptors that the arbiter keeps since its first reload."""


def balance(scene: Scene, outcomes: Outcomes) -> None:
    """Every request is accounted for, and the server is as it was: raises AssertionError with what is not."""
    account(scene, outcomes)
    pids = settled(scene)
    quiet(scene, pids)
    places(scene)
    for pid in settled(scene):
        until(lambda pid=pid: rests(pid), f"worker {pid} rests when nothing is asked of it")
        most = capacity(scene.worker_class) + 6  # threads for disks end when they have had nothing to do for a while
        until(lambda pid=pid, most=most: proc.threads(pid) <= most, f"worker {pid} has at most {most} threads")


def account(scene: Scene, outcomes: Outcomes) -> None:
    """No request was lost but those that the weather took, none served twice, and each answer is its own."""
    assert not scene.bill.complaints, scene.bill.complaints[:5]
    excused = tuple(f"{status} " for status in scene.bill.excused)
    outcomes.wrong = [told for told in outcomes.wrong if not told.partition(": ")[2].startswith(excused)]
    if scene.bill.may_not_begin:
        called = calls(scene.ledger)
        outcomes.lost = [told for told in outcomes.lost if called[told.partition(":")[0]]]
    outcomes.check(scene.ledger, lost=scene.bill.lost)


def quiet(scene: Scene, pids: list[int]) -> None:
    """No worker holds anything of a request that is over, and the channel is empty."""
    seen: dict[str, Any] = {}

    def nothing_left() -> bool:
        with scene.connect() as wire:
            seen.update(wire.get("/board").json())
        workers = [worker for pid, worker in seen["workers"].items() if int(pid) in pids]
        mine = sum(worker["in_flight"] for worker in workers)
        held = sum(worker[gauge] for worker in workers for gauge in GAUGES)
        connections = sum(worker["connections"] for worker in workers)
        return mine == 1 and held == 0 and connections <= 1 and seen["sent"] == seen["taken"]

    try:
        until(nothing_left, "the books of the workers are empty but for the question", every=0.05)
    except AssertionError as error:
        raise AssertionError(f"{error}: {seen}") from None


def places(scene: Scene) -> None:
    """As many calls run at once as before: no place of a worker was lost."""
    gate = scene.directory / "gate"
    count = capacity(scene.worker_class) * scene.workers
    with ExitStack() as stack:
        stack.callback(gate.touch)
        wires = [stack.enter_context(scene.connect()) for _ in range(count)]
        for number, wire in enumerate(wires):
            wire.send(request("GET", f"/?id=place{number}&gate={gate}"))
            until(lambda id_=f"place{number}": ran(scene.ledger, id_), f"call {number} of {count} begins")
        gate.touch()
        for number, wire in enumerate(wires):
            assert wire.reply().json()["id"] == f"place{number}"
    assert all(calls(scene.ledger)[f"place{number}"] == 1 for number in range(count))


def descriptors(scene: Scene) -> dict[int, int]:
    return {pid: proc.descriptors(pid) for pid in settled(scene)}


def nothing_left_of(scene: Scene, arbiter: int) -> None:
    """No zombie, no process that nobody knows, and no descriptor of a process that has ended."""
    if isinstance(scene.server, Molded):
        scene.server.steady(scene.workers)
    most = arbiter + OF_ARBITER
    until(lambda: proc.descriptors(scene.server.pid) <= most, f"the arbiter holds {most} descriptors", within=20)


def gave_back(scene: Scene, most: int) -> None:
    """No worker holds more descriptors than the busiest did before the storm."""
    until(
        lambda: all(count <= most + SLACK for count in descriptors(scene).values()),
        f"at most {most} descriptors are open, give or take {SLACK}",
        within=20,
    )
