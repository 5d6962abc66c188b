"""A core alone in a process, as a worker has it but without an arbiter: `python core_process.py JSON`.

It imports nothing of the tests: their package has pytest, which takes twice as long as what a worker imports.

The JSON names descriptors (listener, messages, page), the class (sync or gthread) and core options. What goes to
on_error is printed, one line each; `served` is printed at the end.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tricorn
from tricorn.config.resolve import resolve
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.workers import native, registry, watch
from tricorn.workers.core_options import core_options

StartResponse = Callable[..., Any]


def application(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    what = "/" + environ["PATH_INFO"].split("/")[1]
    seconds = float(environ["QUERY_STRING"].partition("&")[0] or 0)
    reply = [b"done"]
    match what:
        case "/sleep":
            time.sleep(seconds)
        case "/busy":
            spin(seconds)
        case "/held":
            hold_the_gil(seconds)
        case "/deaf":
            be_deaf(seconds)
        case "/stubborn":
            stay(seconds)
        case "/hint":
            environ["wsgi.early_hints"]([("Link", "</a.css>; rel=preload")])
            stay(seconds)
        case "/stream":
            start_response("200 OK", [])
            return stream(seconds)
        case "/flood":
            start_response("200 OK", [])
            return (b"x" * 65536 for _ in range(1000))
        case "/list":
            start_response("200 OK", [])
            return [b"x" * 65536] * 1000
        case "/raises":
            raise tricorn.RequestTimeout(seconds)
    start_response("200 OK", [("Content-Length", "4")])
    return reply


def spin(seconds: float) -> None:
    """Python code that never waits."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def hold_the_gil(seconds: float) -> None:
    """C code that waits and holds the GIL meanwhile: for a lock that is taken. No signal ends that."""
    c = ctypes.PyDLL(None)
    lock = ctypes.create_string_buffer(64)
    c.pthread_mutex_lock(lock)
    end = time.time() + seconds
    c.pthread_mutex_timedlock(lock, (ctypes.c_long * 2)(int(end), int(end % 1 * 1e9)))


def be_deaf(seconds: float) -> None:
    """As a thread that gets no processor: it takes a signal late, and then goes on for as long."""
    signals = [watch.STACK_SIGNAL] if watch.STACK_SIGNAL else []
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    time.sleep(seconds)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    time.sleep(seconds)


def stay(seconds: float) -> None:
    """An application that will not be told to end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            time.sleep(0.01)
        except tricorn.RequestTimeout:
            os.write(1, b"caught\n")


def stream(seconds: float) -> Iterator[bytes]:
    yield b"begun"
    spin(seconds)
    yield b"done"


def main(given: dict[str, Any]) -> None:
    alias = given["class"]
    page = mmap.mmap(given["page"], 0)

    def on_error(message: str, error: BaseException) -> None:
        # The exception may have come before the first line of the application: only the message tells in which request.
        line = message.removeprefix("Error handling request ").partition(": ")[0]
        ages = [request.age for request in Scoreboard(page).requests() if request.text.partition("?")[0] == line]
        # At once: two threads may have something to say.
        os.write(1, f"{message} | {type(error).__name__} at {min(ages):.4f} s: {error}\n".encode())

    watch.enable(given["messages"])
    options = core_options(resolve([]), registry.load(alias), siblings=False)
    options |= {"threads": 1, "messages": given["messages"], **given["options"]}
    core = native.Core([given["listener"]], options, page)
    gateway = native.WsgiGateway(application, {"SCRIPT_NAME": ""}, on_error)
    core.start()
    signal.set_wakeup_fd(core.wakeup_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda *_: core.drain())
    watch.listen(core)
    if alias == "sync":
        core.serve(gateway)
    else:
        count = options["threads"]
        assert isinstance(count, int)
        threads = [threading.Thread(target=core.serve, args=(gateway,), daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        core.wait()
        for thread in threads:
            thread.join()
    signal.set_wakeup_fd(-1)
    core.close()
    print("served", flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
