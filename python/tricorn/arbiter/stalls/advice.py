"""What helps against a stall: by the library that is known, else by the verdict and the worker class."""

from __future__ import annotations

from tricorn.arbiter.stalls.owner import Package, same
from tricorn.record import Record
from tricorn.workers.stall import Stall

GREEN = ("gevent", "eventlet")
PAGE = "docs/DOCTOR.md"

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


def cure_of(stall: Stall, kind: str, doctor: str, package: Package | None) -> Cure:
    """`kind` is the worker's class, `doctor` the setting of this name."""
    link = f"{PAGE}#{stall.verdict.lower()}"
    known = _of_library(stall, kind, doctor, package) if stall.verdict in WAITS else ""
    return Cure(known or _of_line(stall, kind) or _of_verdict(stall.verdict, kind), link)


def _of_library(stall: Stall, kind: str, doctor: str, package: Package | None) -> str:
    from tricorn.green.drivers.records import Blocks, Check, Hook
    from tricorn.green.drivers.table import DRIVERS

    title = TITLES.get(stall.native.library, "") if package is None else package.name.removesuffix("-binary")
    driver = next((each for each in DRIVERS if title and same(each.title, title)), None)
    if driver is None:
        return ""
    if kind not in GREEN:
        return f"In coroutines use {driver.loop}." if driver.loop else ""
    match driver.under(kind):
        case Blocks(remedy=remedy, cure=cure):
            heal = " Without a change of the code: --doctor heal." if cure and doctor != "heal" else ""
            return f"{remedy}{heal}"
        case Hook() | Check():
            return f"{driver.title} can wait cooperatively; the log of the start says why it does not here."
    return ""


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
            return "The thread that holds the GIL is what to cure: move its work into a process of its own."
        case "GC_PAUSE":
            return "gc.freeze() once the application is loaded, and a larger threshold for the oldest generation."
        case "STARVED":
            return "Fewer workers on this machine, or more processors or quota for them."
    return f"tricorn doctor --pid shows what the worker does; what waits can wait in a thread: {offload}."
