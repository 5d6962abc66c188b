"""Remedies for stalls: by library if it is known, otherwise by verdict and worker class."""

from __future__ import annotations

import re

from tricorn import extensions
from tricorn.libraries import LIBRARIES
from tricorn.record import Record
from tricorn.workers.pools import BY_NAME
from tricorn.workers.stall import Stall

GREEN = ("gevent", "eventlet")
PAGE = "docs/diagnose/doctor.md"

TITLES = {
    "libpq": "psycopg2",
    "libcurl": "pycurl",
    "libsqlite3": "sqlite3",
    "_sqlite3": "sqlite3",
    "librdkafka": "confluent-kafka",
}
"""Libraries that may be the system's own: the driver in front of each."""

WAITS = ("BLOCKED_SYSCALL", "LOCK_WAIT")
"""Verdicts for which a thread helps: the call releases the GIL while it waits."""


class Cure(Record):
    text: str
    """Whole sentences."""
    link: str


Machine = tuple[int, "float | None"]
"""Number of workers, and of CPUs that they may use."""


def cure_of(stall: Stall, kind: str, doctor: str, machine: Machine = (1, None)) -> Cure:
    """Returns the remedy for a stall. `kind` is the worker class, `doctor` the setting of this name."""
    link = f"{PAGE}#{stall.verdict.lower()}"
    if stall.verdict == "SATURATED":
        return Cure(_of_saturation(stall, kind, *machine), link)
    if stall.wait.pool in BY_NAME:
        return Cure(BY_NAME[stall.wait.pool].cure, link)
    seen = stall.wait.seen or stall.verdict
    if stall.verdict == "SLOW_REQUEST":
        return Cure(_of_slow_request(seen), link)
    known = _of_library(stall, kind, doctor) if seen in WAITS else ""
    # The line of a GIL_VICTIM is that of the thread that holds the GIL.
    of_line = "" if seen == "GIL_VICTIM" else _of_line(stall, kind)
    return Cure(known or of_line or _of_verdict(seen, kind), link)


def _of_slow_request(seen: str) -> str:
    """Advises on a slow request that has its own thread: it blocks others only while it holds the GIL."""
    match seen:
        case "BLOCKED_SYSCALL" | "UNDECIDED" | "LOCK_WAIT":
            return "Set a timeout in the client that it waits for, or move such work to a job queue."
        case "CPU_NATIVE":
            return "Move work this long to a job queue."
        case "GC_PAUSE" | "STARVED" | "GIL_VICTIM":
            return _of_verdict(seen, "gthread")
    return "Move work this long to a job queue: it also slows down the other threads of its worker."


def _of_saturation(stall: Stall, kind: str, workers: int, processors: float | None) -> str:
    wanted = stall.queued >= WANTED
    is_full = processors is not None and stall.wait.process * workers >= FULL * processors
    if wanted or is_full:
        have = "" if processors is None else f" ({workers} workers, {processors:g} CPUs)"
        return f"All CPUs are in use{have}, so more workers will not help: add CPUs, or do less work per request."
    if stall.wait.process >= FULL:
        of = "" if processors is None else f" ({workers} workers, {processors:g} CPUs)"
        return f"Start more workers: each worker uses one CPU, and there are idle ones{of}."
    if kind in GREEN or kind not in THREADED:
        return (
            "The loop spends most of its time in short blocking calls: use a client that waits cooperatively, or "
            "tricorn.offload; or start more workers."
        )
    if kind == "gthread":
        return "Its threads mostly wait: use more threads if the backend can take more requests, or more workers."
    return "Its thread mostly waits: start more workers, or use -k gthread with several threads."


THREADED = ("sync", "gthread")
WANTED = 0.2
"""Share of time that a worker waits for a CPU from which on all CPUs count as in use."""
FULL = 0.8
"""Share of a CPU that counts as all of it."""


def _of_library(stall: Stall, kind: str, doctor: str) -> str:
    title = stall.native.package.removesuffix("-binary") or TITLES.get(stall.native.library, "")
    library = next((each for each in LIBRARIES.values() if title and _plain(each.title) == _plain(title)), None)
    if library is None:
        return ""
    if kind not in GREEN:
        return f"In coroutines, use {library.loop}." if library.loop else ""
    advise = extensions.load(extensions.ADVICE, kind, f"The worker class {kind!r}")
    text: str = advise(library.title, kind, doctor)
    return text


def _plain(name: str) -> str:
    """Normalizes the name of a package for comparison (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _of_line(stall: Stall, kind: str) -> str:
    source = stall.place.source
    if "time.sleep(" in source and kind not in GREEN:
        return "In a coroutine: await asyncio.sleep(…)."
    if "subprocess." in source and kind not in GREEN:
        return "In a coroutine: await asyncio.create_subprocess_exec(…)."
    return ""


def _of_verdict(verdict: str, kind: str) -> str:
    offload = "tricorn.offload" if kind in GREEN else "await tricorn.offload(function)(…)"
    match verdict:
        case "BLOCKED_SYSCALL" | "CPU_NATIVE":
            return f"Make the call in a thread ({offload}), or use a client that waits cooperatively."
        case "LOCK_WAIT":
            return f"Hold the lock for a shorter time, or wait for it in a thread ({offload})."
        case "CPU_PYTHON" | "CPU_NATIVE_GIL" | "BLOCKED_HOLDING_GIL":
            return "Threads do not help, processes do: start more workers, or move this work to its own process."
        case "GIL_VICTIM":
            return "The thread that holds the GIL is the problem: move its work to another process."
        case "GC_PAUSE":
            return "Call gc.freeze() once the application is loaded, and raise the threshold of the oldest generation."
        case "POOL_WAIT":
            return "Return what you take from the pool sooner, or make the pool larger."
        case "SATURATED":
            return "Start more workers, as long as there are CPUs for them."
        case "SLOW_REQUEST":
            return "Set a timeout for what it waits for, or move work this long to a job queue."
        case "STARVED":
            return "Run fewer workers on this machine, or give them more CPUs or a larger quota."
    return f"Run tricorn doctor --pid to see what the worker does; calls that wait can do so in a thread ({offload})."
