"""A configuration that notes what each turn of the control socket takes of the arbiter's loop.

The arbiter writes the figures when it ends, for each turn in which it had to do with a client: nanoseconds by the
clock, those of its processor, with how many clients, and whether modules were imported.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Container
from pathlib import Path
from typing import Any

from tricorn.arbiter.control.dispatcher import Dispatcher

workers = int(os.environ["BENCH_WORKERS"])
control_socket = os.environ["BENCH_SOCKET"]
control_socket_mode = 0o666
control_read_only = True
preload_app = True
errorlog = os.devnull

_turns: list[tuple[int, int, int, bool]] = []
_turn = Dispatcher.turn


def _timed(dispatcher: Dispatcher, ready: Container[int], state: Any, now: float) -> Any:
    listener = dispatcher.listener
    served = sum(each.more or each.socket.fileno() in ready for each in listener.clients.values())
    served += listener.bound is not None and listener.bound.socket.fileno() in ready
    modules = len(sys.modules)
    began, cpu = time.perf_counter_ns(), time.thread_time_ns()
    events = _turn(dispatcher, ready, state, now)
    if served:
        spent = time.perf_counter_ns() - began, time.thread_time_ns() - cpu
        _turns.append((*spent, served, len(sys.modules) > modules))
    return events


def when_ready(server: Any) -> None:
    Dispatcher.turn = _timed  # type: ignore[method-assign, assignment]


def on_exit(server: Any) -> None:
    Path(os.environ["BENCH_TURNS"]).write_text(json.dumps(_turns))
