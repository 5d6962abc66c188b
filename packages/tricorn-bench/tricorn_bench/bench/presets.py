"""The classical questions, one record each: which configurations, under which loads, over which axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec

from tricorn.record import Record, replace
from tricorn.workers.registry import REFORKED
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.trial import Stage, Trial

WORKERS = tuple(range(1, 11))
USERS = (10, 100, 1_000, 10_000)
CONNECTIONS = (10, 50, 100, 500, 1_000)
BEYOND_LIMIT = (0.5, 0.75, 1.0, 1.25, 2.0)
"""Shares of a database's connection limit."""
SHARERS = 8
"""Workers that may share memory."""
REFORK = 500
"""Requests of a worker that becomes the mold."""
LOADS = (0.30, 0.50, 0.70, 0.85)
STEADY = 5.0
"""Seconds that all users are there, beyond the longest time that one thinks: each has asked."""


class Asked(Record):
    """Choices of the command line."""

    configurations: tuple[Configuration, ...]
    interface: str | None
    stage: Stage
    levels: tuple[int, ...] = ()
    """Instead of the preset's own (`--levels`)."""
    limit: int | None = None
    """Connections of the database."""


class Preset(Record):
    name: str
    question: str
    axis: str | None
    defaults: Callable[[Asked], Sequence[Configuration]]
    """The configurations if none are given."""
    trials: Callable[[Asked, Sequence[Configuration]], list[Trial]]
    at_levels: bool = True
    budget: float | None = None
    """Seconds, unless it is said how long rounds are."""


CLASSES = {
    "WSGI": ("sync", "gthread --threads 4", "gevent", "eventlet"),
    "ASGI": ("asgi",),
    "tornado": ("tornado",),
    "aiohttp": ("aiohttp",),
}
PACKAGES = ("gevent", "eventlet", "tornado", "aiohttp")


def every_class(asked: Asked) -> list[Configuration]:
    """Returns every worker class that can run the application; one whose library is missing stays, with the reason."""
    found = []
    for line in CLASSES[asked.interface or "WSGI"]:
        one = Configuration.parse(line)
        package = line.partition(" ")[0]
        if package in PACKAGES and find_spec(package) is None:
            one = replace(one, why_not=f"{package} is not installed: pip install 'tricorn[{package}]'")
        found.append(one)
    return found


def best_class(asked: Asked) -> list[Configuration]:
    """The one that the application gets without being asked."""
    return [Configuration.parse(CLASSES[asked.interface or "WSGI"][0].partition(" ")[0])]


def sharing(asked: Asked) -> list[Configuration]:
    """One class whose workers share nothing, what the arbiter or a mold has loaded, or what one has learned."""
    named = CLASSES[asked.interface or "WSGI"][0].partition(" ")[0]
    flags = ("", " --preload", " --mold", *([f" --mold --refork {REFORK}"] if named in REFORKED else []))
    alike = [f"{named} -w {SHARERS}{flag}" for flag in flags]
    return [Configuration.parse(line) for line in alike]


def crowds(asked: Asked) -> list[Configuration]:
    """Classes under which a request that waits lets others go on; room for a thousand in each worker."""
    lines = ("gthread -w 4 --threads 4", "gevent -w 4 --worker-connections 1000")
    if asked.interface == "WSGI" or asked.interface is None:
        return [Configuration.parse(line) for line in lines]
    return [Configuration.parse(f"{asked.interface.lower()} -w 4")]


def _plain(asked: Asked, configurations: Sequence[Configuration]) -> list[Trial]:
    return [Trial(one, (asked.stage,), one.name) for one in configurations]


def _by_workers(asked: Asked, configurations: Sequence[Configuration]) -> list[Trial]:
    trials: dict[str, Trial] = {}
    for one in configurations:
        for count in asked.levels or WORKERS:
            several = one.with_workers(count)
            family = Configuration(one.server, one.other_words).name if not one.worker_class else _without_count(one)
            trials.setdefault(several.name, Trial(several, (replace(asked.stage, at=float(count)),), family))
    return list(trials.values())


def _without_count(one: Configuration) -> str:
    counted = one.with_workers(1).name
    return counted.rpartition(f" {one.kind.workers_flag[0]} ")[0] if one.kind.workers_flag else counted


def _by_users(asked: Asked, configurations: Sequence[Configuration]) -> list[Trial]:
    seconds = max(asked.stage.seconds, asked.stage.think[1] + STEADY)
    stages = tuple(
        replace(asked.stage, users=count, seconds=seconds, at=float(count)) for count in asked.levels or USERS
    )
    return [Trial(one, stages, one.name) for one in configurations]


def _by_connections(asked: Asked, configurations: Sequence[Configuration]) -> list[Trial]:
    levels = asked.levels or (tuple(round(part * asked.limit) for part in BEYOND_LIMIT) if asked.limit else CONNECTIONS)
    stages = tuple(replace(asked.stage, connections=count, at=float(count)) for count in levels)
    return [Trial(one, stages, one.name) for one in configurations]


def _by_load(asked: Asked, configurations: Sequence[Configuration]) -> list[Trial]:
    """First what one request takes alone, and what the server reaches at most; then parts of that."""
    levels = tuple(level / 100 for level in asked.levels) or LOADS
    if not all(0 < level < 1 for level in levels):
        raise BenchError("The levels of the preset tails are percent of the capacity: between 1 and 99.")
    prepared = (
        replace(asked.stage, connections=1, seconds=min(1.0, asked.stage.seconds), kept=False),
        replace(asked.stage, kept=False),
    )
    loads = tuple(replace(asked.stage, share=level, at=level * 100) for level in levels)
    return [Trial(one, (*prepared, *loads), one.name) for one in configurations]


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("classes", "Every class that can run the application", None, every_class, _plain, False, 150.0),
        Preset("workers", "Throughput for so many workers", "workers", best_class, _by_workers),
        Preset("users", "So many users, who think between two requests", "users", crowds, _by_users),
        Preset("connections", "So many requests at once", "connections", crowds, _by_connections),
        Preset("memory", "Memory of eight workers", None, sharing, _plain, False),
        Preset("tails", "Latency at parts of the capacity", "percent of the capacity", best_class, _by_load),
    )
}

PLAIN = Preset("", "", None, every_class, _plain, at_levels=False)
"""Default: no preset."""
