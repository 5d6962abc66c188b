"""How long a worker that leaves goes on, and over how long it sends away clients that would stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.metrics.scoreboard import Scoreboard
from tricorn.shutdown import NOTICE
from tricorn.unpatched import os

if TYPE_CHECKING:
    from tricorn.workers.contract import Contract
    from tricorn.workers.native import Core


def patience(worker: Contract) -> float:
    """Seconds that calls may go on; when they are over the arbiter sends QUIT, if there is one."""
    graceful = worker.cfg.graceful_timeout
    # The pipe ends a moment before the system says who the new parent is.
    is_orphan = os.getppid() != worker.ppid or worker.fds.has_no_arbiter()
    return max(graceful - ORPHANS_REST, graceful / 2) if is_orphan else graceful


def last_call(worker: Contract) -> float:
    """Seconds after which every stream is told to end; the rest of the patience is for those that take their time."""
    return 0.0 if worker.quick else patience(worker) * LAST_CALL


def lead(worker: Contract) -> float:
    """Seconds between the notice and the first end: an application that has asked for it may say goodbye by itself."""
    return LEAD if NOTICE.is_used and not worker.quick and not worker.cfg.reload else 0.0


def spread(worker: Contract) -> float:
    """Seconds over which clients that connect again are sent away, at most."""
    serves_on = Scoreboard(worker.spec.page).replaced or not worker.cfg.is_default("stream_drain")
    # With `reload` pages in browsers are to meet the new code.
    if worker.cfg.reload or not serves_on:
        return 0.0
    return min(worker.cfg.stream_drain, last_call(worker))


def close_streams(worker: Contract, core: Core) -> None:
    """On threads and greenlets, at their next piece. In a signal handler."""
    core.close_streams(lead(worker), min(spread(worker), worker.at_once(worker.spec.config) / RATE), last_call(worker))


def report_streams(worker: Contract) -> None:
    """One line for all streams that the worker has ended."""
    try:
        snapshot = Scoreboard(worker.spec.page).read()
    except ValueError:  # the application has written into the page
        return
    closed = snapshot.figures["streams_closed"] if snapshot is not None else 0
    if closed:
        late = f"; {worker.late_streams} of them did not stop in time" if worker.late_streams else ""
        worker.log.info("Closed %d %s%s", closed, "stream" if closed == 1 else "streams", late)


RATE = 100
"""Clients a second that are sent away at least: so many new connections are no burst for any server."""

LEAD = 1.0

LAST_CALL = 2 / 3
"""The part of `graceful_timeout` after which all streams are told to end."""

ORPHANS_REST = 2.0
"""A worker whose arbiter is gone kills itself when `graceful_timeout` is over, and gets no QUIT before."""
