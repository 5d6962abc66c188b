"""Advice against a stall: by the library that is known, else by the verdict and the worker class."""

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
"""Verdicts against which a thread helps: the call gives the GIL away while it waits."""


class Cure(Record):
    text: str
    """Whole sentences."""
    link: str


Machine = tuple[int, "float | None"]
"""Workers, and the processors that they may use."""


def cure_of(stall: Stall, kind: str, doctor: str, machine: Machine = (1, None)) -> Cure:
    """`kind` is the worker's class, `doctor` the setting of this name."""
    link = f"{PAGE}#{stall.verdict.lower()}"
    if stall.verdict == "SATURATED":
        return Cure(_of_saturation(stall, kind, *machine), link)
    if stall.wait.pool in BY_NAME:
        return Cure(BY_NAME[stall.wait.pool].cure, link)
    seen = stall.wait.seen or stall.verdict
    if stall.verdict == "SLOW_REQUEST":
        return Cure(_of_slow_request(seen), link)
    known = _of_library(stall, kind, doctor) if seen in WAITS else ""
    # The line is another thread's where that holds the GIL.
    of_line = "" if seen == "GIL_VICTIM" else _of_line(stall, kind)
    return Cure(known or of_line or _of_verdict(seen, kind), link)


def _of_slow_request(seen: str) -> str:
    """Advises on a thread of its own: it holds up no other request, unless it has the GIL."""
    match seen:
        case "BLOCKED_SYSCALL" | "UNDECIDED" | "LOCK_WAIT":
            return "A limit of time for what it waits for (a timeout of its client), or a queue of jobs for such work."
        case "CPU_NATIVE":
            return "Work that long belongs in a queue of jobs."
        case "GC_PAUSE" | "STARVED" | "GIL_VICTIM":
            return _of_verdict(seen, "gthread")
    return "Work that long belongs in a queue of jobs: here it holds up the other threads of its worker, too."


def _of_saturation(stall: Stall, kind: str, workers: int, processors: float | None) -> str:
    wanted = stall.queued >= WANTED
    is_full = processors is not None and stall.wait.process * workers >= FULL * processors
    if wanted or is_full:
        have = "" if processors is None else f" ({workers} workers, {processors:g} processors)"
        return (
            f"The processors are used up{have}, so that more workers do not help: more processors, or less work for "
            "each request."
        )
    if stall.wait.process >= FULL:
        of = "" if processors is None else f" ({workers} workers, {processors:g} processors)"
        return f"More workers: each computes on one processor, and there are others{of}."
    if kind in GREEN or kind not in THREADED:
        return (
            "Most of its time the loop waits in short calls that do not give way: a client that waits cooperatively, "
            "tricorn.offload; or more workers."
        )
    if kind == "gthread":
        return "Its threads wait for something else: more threads, if what they wait for bears more, or more workers."
    return "Its thread waits for something else: more workers, or gthread with threads."


THREADED = ("sync", "gthread")
WANTED = 0.2
"""The share of its time in which a worker wanted a processor and had none, from which on they are used up."""
FULL = 0.8
"""The share of a processor that counts as all of it."""


def _of_library(stall: Stall, kind: str, doctor: str) -> str:
    title = stall.native.package.removesuffix("-binary") or TITLES.get(stall.native.library, "")
    library = next((each for each in LIBRARIES.values() if title and _plain(each.title) == _plain(title)), None)
    if library is None:
        return ""
    if kind not in GREEN:
        return f"In coroutines use {library.loop}." if library.loop else ""
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
            return f"Have a thread make the call: {offload}; or use a client that waits cooperatively."
        case "LOCK_WAIT":
            return f"Hold the lock for less time, or wait for it in a thread: {offload}."
        case "CPU_PYTHON" | "CPU_NATIVE_GIL" | "BLOCKED_HOLDING_GIL":
            return "Threads do not help, processes do: more workers, or a process of its own for this work."
        case "GIL_VICTIM":
            return "The thread that holds the GIL is the problem: move its work to another process."
        case "GC_PAUSE":
            return "gc.freeze() once the application is loaded, and a larger threshold for the oldest generation."
        case "POOL_WAIT":
            return "Hold what the pool gives for less time, or make the pool larger."
        case "SATURATED":
            return "More workers, as long as there are processors for them."
        case "SLOW_REQUEST":
            return "A limit of time for what it waits for, or a queue of jobs for work that long."
        case "STARVED":
            return "Fewer workers on this machine, or more processors or quota for them."
    return f"tricorn doctor --pid shows what the worker does; what waits can wait in a thread: {offload}."
