"""One storm: drawn from a seed, bounded in time, and its books."""

from __future__ import annotations

import itertools
import random
import signal
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

from tests.harness import proc
from tests.harness.marked import Marked
from tests.harness.site import replaced
from tests.harness.transports import NAMES, Transport, named
from tests.storms import books, weather
from tests.storms.scene import Scene, settled
from tests.storms.weather import Front, Weather

CLASSES = ("sync", "gthread", "gevent", "eventlet", "asgi", "tornado", "aiohttp")
CLIENTS = 6


class Plan(NamedTuple):
    """All that is random about a storm but the weather's own dice."""

    seed: int
    worker_class: str
    workers: int
    kinds: list[Weather]
    seconds: float
    transport: Transport
    ends_in_load: bool
    """The server is told to stop while requests come; else it is looked at first."""
    molds: bool
    """A mold forks the workers (`preload_app = mold`)."""

    def __str__(self) -> str:
        kinds = ", ".join(kind.name for kind in self.kinds)
        end = ", TERM under load" if self.ends_in_load else ""
        by = f"{self.worker_class} × {self.workers}{' of a mold' if self.molds else ''}, {self.transport}"
        return f"storm {self.seed}: {by}, {self.seconds:.1f} s of {kinds}{end}"


def plan(seed: int) -> Plan:
    dice = random.Random(seed)
    worker_class = CLASSES[seed % len(CLASSES)]
    workers, kinds, seconds = dice.randint(1, 3), weather.forecast(worker_class, dice), dice.uniform(2.0, 5.0)
    ends_in_load, molds = dice.random() < 1 / 3, dice.random() < 1 / 3
    if molds:
        kinds += weather.OF_MOLDS
    transport = named(NAMES[seed // len(CLASSES) % len(NAMES)])
    return Plan(seed, worker_class, workers, kinds, seconds, transport, ends_in_load, molds)


def rage(planned: Plan) -> None:
    """Raises AssertionError, with the plan and the server's log, when something does not hold."""
    with tempfile.TemporaryDirectory(prefix="tricorn-storm-") as folder:
        scene = Scene(planned.worker_class, planned.workers, Path(folder), planned.transport, molds=planned.molds)
        try:
            happen(scene, planned)
        except (AssertionError, OSError) as error:
            log = "\n".join(told(scene.server.log.lines)[-60:]) if hasattr(scene.server, "log") else ""
            raise AssertionError(f"{planned}\n{error!r}\n{log}") from error


def told(lines: list[str]) -> list[str]:
    """The log, with equal lines that follow one another told once."""
    runs = [(line, len(list(group))) for line, group in itertools.groupby(lines)]
    return [line if count == 1 else f"{line} [{count} times]" for line, count in runs]


def happen(scene: Scene, planned: Plan) -> None:
    dice = random.Random(planned.seed + 1)
    clients = Marked(
        scene.server.address, clients=CLIENTS, seed=planned.seed, timeout=30, connect=planned.transport.connect
    )
    with scene, clients as load:
        load.settle(20)
        before, arbiter = max(books.descriptors(scene).values()), proc.descriptors(scene.server.pid)
        front = Front(scene, planned.kinds, dice)
        front.begin()
        scene.wait(planned.seconds)
        front.pass_over()
        scene.charge(lost=may_be_lost(scene, planned))
        if planned.ends_in_load:
            stop_under_load(scene, load, dice)
            return
        if any(kind.name == "scaling" for kind in planned.kinds):
            # Signals that wait together are one: the number of workers is the configured one again after a reload only.
            replaced(scene.server, lambda: scene.server.signal(signal.SIGHUP), workers=scene.workers, within=40)
        settled(scene)
        load.settle(20)
        books.balance(scene, load.stop())
        books.gave_back(scene, before + CLIENTS)
        books.nothing_left_of(scene, arbiter)


def stop_under_load(scene: Scene, load: Marked, dice: random.Random) -> None:
    """A request that has begun is served to the end; the others are refused, and so are those that wait to the last."""
    scene.bill.excused.add(503)
    load.leaving()
    asking = threading.Thread(target=weather.questions_to_the_end, args=(scene, dice), daemon=True)
    asking.start()
    scene.server.signal(signal.SIGTERM)
    outcomes = load.join(60)
    assert scene.server.wait_exit(30) == 0
    asking.join(40)
    books.account(scene, outcomes)


def may_be_lost(scene: Scene, planned: Plan) -> int:
    """Requests that ended with a process that the weather killed: each client had one at the most."""
    log = scene.server.log
    if any(kind.name == "memory" for kind in planned.kinds):
        scene.charge(deaths=len(log.matching("was sent SIG(ABRT|KILL)")))
    lost = scene.bill.deaths * CLIENTS
    # Without descriptors connections are closed that have no request, and one may be on its way: it does not begin.
    scene.bill.may_not_begin = any(kind.name in ("half-heads", "hunger") for kind in planned.kinds)
    return lost
