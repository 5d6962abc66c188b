"""What an application can do to its greenlet, and to those of others: for the classes gevent and eventlet.

GREEN in the environment names the library. The first segment of the path names what is done; `/events` tells what was
noted since, `/made` how many greenlets the worker has made for requests.
"""

from __future__ import annotations

import contextvars
import gc
import importlib
import json
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl

from green_library import Exit, GreenLocal, Timeout, blocking_sleep, getcurrent, kill, link, start_timeout

COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="nothing")
SHADE: contextvars.ContextVar[str | None] = contextvars.ContextVar("shade", default=None)
COLOUR.set("of the import")
GREEN_LOCAL = GreenLocal()
THREAD_LOCAL = threading.local()


class Initialised(threading.local):
    """Its __init__ runs once for each thread that looks at it: for each request, here."""

    def __init__(self) -> None:
        self.values: list[str] = []


INITIALISED = Initialised()
BY_GREENLET: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
KEPT: dict[str, Any] = {}
"""Greenlets of requests, and what else they left here by name."""
THINGS: dict[str, weakref.ref[Any]] = {}
EVENTS: list[str] = []
made = 0


def count_greenlets() -> None:
    hub = importlib.import_module(f"tricorn_green.workers.{os.environ['GREEN']}").Hub
    make = hub.new_greenlet

    def counted(self: Any, *arguments: Any) -> Any:
        global made
        made += 1
        return make(self, *arguments)

    hub.new_greenlet = counted


if "COUNT_GREENLETS" in os.environ:
    count_greenlets()


class Thing:
    """Can be seen to die."""


class Own(BaseException):
    """No Exception."""


Given = dict[str, str]
Start = Callable[..., Callable[[bytes], object]]


def answer(start_response: Start, what: object = "done") -> list[bytes]:
    text = json.dumps(what).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
    return [text]


def light_marks() -> dict[str, Any]:
    """What a request sees of others that leaves no trace in its greenlet."""
    current = getcurrent()
    return {
        "colour": COLOUR.get(),
        "shade": SHADE.get(),
        "attribute": getattr(current, "mark", None),
        "known": BY_GREENLET.get(current),
        "handled": repr(sys.exc_info()[1]),
    }


def marks() -> dict[str, Any]:
    """All that a request could see of another one."""
    return light_marks() | {
        "green_local": sorted(vars(GREEN_LOCAL).items()),
        "thread_local": sorted(vars(THREAD_LOCAL).items()),
        "initialised": list(INITIALISED.values),
    }


def leave_marks(id_: str) -> None:
    COLOUR.set(id_)
    SHADE.set(id_)
    current = getcurrent()
    current.mark = id_
    BY_GREENLET[current] = id_
    GREEN_LOCAL.mark = id_
    THREAD_LOCAL.mark = id_
    INITIALISED.values.append(id_)


def do_marks(given: Given, start_response: Start) -> Iterable[bytes]:
    """What is there at the beginning, and what after a wait in which others leave theirs."""
    begins = marks()
    leave_marks(given["id"])
    time.sleep(float(given.get("s", "0")))
    return answer(start_response, {"begins": begins, "ends": marks()})


def do_light(given: Given, start_response: Start) -> Iterable[bytes]:
    """As most requests are: nothing of its greenlet is left when it ends."""
    begins = light_marks()
    COLOUR.set(given["id"])
    SHADE.set(given["id"])
    if "s" in given:
        time.sleep(float(given["s"]))
    return answer(start_response, {"begins": begins, "ends": light_marks()})


def do_stages(given: Given, start_response: Start) -> Iterable[bytes]:
    """One context for the call, the iteration and the close of a response, whatever happens in between."""

    class Body:
        def __iter__(self) -> Iterator[bytes]:
            THREAD_LOCAL.stages = [*THREAD_LOCAL.stages, COLOUR.get()]
            for _ in range(3):
                time.sleep(0.01)
                yield f"{COLOUR.get()} {THREAD_LOCAL.mark}\n".encode()
            COLOUR.set(f"{given['id']} at its end")

        def close(self) -> None:
            EVENTS.append(f"closed {COLOUR.get()} {THREAD_LOCAL.mark} {THREAD_LOCAL.stages}")

    COLOUR.set(given["id"])
    THREAD_LOCAL.mark = given["id"]
    THREAD_LOCAL.stages = []
    start_response("200 OK", [("Content-Type", "text/plain")])
    return Body()


def do_handling(given: Given, start_response: Start) -> Iterable[bytes]:
    """Waits while it handles an exception: no other request does."""
    try:
        raise ValueError(given["id"])
    except ValueError:
        time.sleep(float(given["s"]))
        return answer(start_response, repr(sys.exc_info()[1]))


def do_linked(given: Given, start_response: Start) -> Iterable[bytes]:
    """The test wants to know when this request has ended, however it ends."""
    name = given["id"]
    link(getcurrent(), lambda: EVENTS.append(f"linked {name}"))
    if given.get("how") == "fails":
        raise RuntimeError(f"linked marker {name}")
    if given.get("how") == "streams":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return (f"piece {number} {len(EVENTS)}\n".encode() for number in range(3))
    return answer(start_response)


def do_weak(given: Given, start_response: Start) -> Iterable[bytes]:
    THINGS[given["id"]] = weakref.ref(getcurrent())
    return answer(start_response)


def do_fails(given: Given, start_response: Start) -> Iterable[bytes]:
    """With something in its frame, of a nested one, and of a generator."""

    def inner() -> None:
        thing = Thing()
        THINGS[given["id"]] = weakref.ref(thing)
        time.sleep(0.01)
        raise RuntimeError(f"failing marker {given['id']}")

    def generate() -> Iterator[bytes]:
        yield b"begun"
        inner()

    if given.get("how") == "handled":
        try:
            inner()
        except RuntimeError:
            return answer(start_response, "handled")
    if given.get("how") == "streams":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return generate()
    inner()
    raise AssertionError


def do_alive(given: Given, start_response: Start) -> Iterable[bytes]:
    """Whether that thing lives, without the help of the collector."""
    if "collect" in given:
        gc.collect()
    return answer(start_response, THINGS[given["id"]]() is not None)


def do_hold(given: Given, start_response: Start) -> Iterable[bytes]:
    """Waits for half a minute, or until it is ended; notes how."""
    KEPT[given["id"]] = getcurrent()
    EVENTS.append(f"holding {given['id']}")
    thing = Thing()
    THINGS[given["id"]] = weakref.ref(thing)

    def generate() -> Iterator[bytes]:
        yield b"begun"
        wait()

    def wait() -> None:
        try:
            time.sleep(30)
        except BaseException as error:
            EVENTS.append(f"ended {given['id']} by {type(error).__name__}")
            if given.get("then") != "goes_on":
                raise
        finally:
            if given.get("then") == "waits":
                time.sleep(0.1)
                EVENTS.append(f"waited {given['id']}")

    if given.get("how") == "streams":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return generate()
    wait()
    return answer(start_response, "it went on")


def do_kill(given: Given, start_response: Start) -> Iterable[bytes]:
    """Ends another request, in its midst or long after; or itself."""
    victim = getcurrent() if given["id"] == "self" else KEPT[given["id"]]
    kill(victim, {"exit": None, "own": Own, "error": RuntimeError}[given.get("by", "exit")])
    time.sleep(0.01)
    return answer(start_response, bool(victim.dead))


def do_keep(given: Given, start_response: Start) -> Iterable[bytes]:
    """Keeps its greenlet, and ends."""
    KEPT[given["id"]] = getcurrent()
    return answer(start_response)


def do_dead(given: Given, start_response: Start) -> Iterable[bytes]:
    return answer(start_response, bool(KEPT[given["id"]].dead))


def do_timeout(given: Given, start_response: Start) -> Iterable[bytes]:
    seconds = float(given["s"])

    def stream() -> Iterator[bytes]:
        yield b"begun"
        with Timeout(seconds):
            time.sleep(30)

    match given["how"]:
        case "caught":
            try:
                with Timeout(seconds):
                    time.sleep(30)
            except Timeout:
                return answer(start_response, "caught")
        case "silent":
            with Timeout(seconds, False):
                time.sleep(30)
        case "other":
            try:
                with Timeout(seconds, KeyError("in time")):
                    time.sleep(30)
            except KeyError:
                return answer(start_response, "caught")
        case "uncaught":
            with Timeout(seconds):
                time.sleep(30)
        case "streams":
            start_response("200 OK", [("Content-Type", "text/plain")])
            return stream()
        case "forgotten":
            start_timeout(seconds)
    return answer(start_response, "in time")


def do_raise(given: Given, start_response: Start) -> Iterable[bytes]:
    kinds = {
        "SystemExit": SystemExit,
        "GreenletExit": Exit,
        "KeyboardInterrupt": KeyboardInterrupt,
        "GeneratorExit": GeneratorExit,
        "Own": Own,
        "Timeout": Timeout,
    }
    error = kinds[given["kind"]]()

    def stream() -> Iterator[bytes]:
        yield b"begun"
        raise error

    if "streams" in given:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return stream()
    raise error


def do_outlived(given: Given, start_response: Start) -> Iterable[bytes]:
    """Starts something that uses what was this request's alone when `/after` says so."""
    go = KEPT[given["id"]] = threading.Event()
    write = start_response("200 OK", [("Content-Type", "text/plain")])
    uses: dict[str, Callable[[], object]] = {
        "write": lambda: write(b"LATE"),
        "start_response": lambda: start_response("201 Late", [("X-Late", "yes")]),
        "input": lambda: given_input.read(),
        "exc_info": lambda: start_response("500 Late", [], late_error()),
    }
    given_input: Any = KEPT["input"]

    def use() -> None:
        go.wait(20)
        try:
            EVENTS.append(f"used {given['id']}: {uses[given['use']]()!r}")
        except BaseException as error:
            EVENTS.append(f"refused {given['id']}: {type(error).__name__}: {error}")

    threading.Thread(target=use, daemon=True).start()
    return [b"answer of ", given["id"].encode()]


def late_error() -> Any:
    try:
        raise KeyError("late")
    except KeyError:
        return sys.exc_info()


def do_after(given: Given, start_response: Start) -> Iterable[bytes]:
    KEPT[given["id"]].set()
    time.sleep(0.01)
    return answer(start_response)


def do_spawned(given: Given, start_response: Start) -> Iterable[bytes]:
    """Children of a request: each has a look at what its parent has, and one outlives it."""
    COLOUR.set(given["id"])
    THREAD_LOCAL.mark = given["id"]
    seen: list[object] = []
    children = [threading.Thread(target=lambda: seen.append(sorted(vars(THREAD_LOCAL)))) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    return answer(start_response, {"children": seen, "mine": [COLOUR.get(), THREAD_LOCAL.mark]})


def do_blocks(given: Given, start_response: Start) -> Iterable[bytes]:
    """Holds the hub, and with it everybody, in a call that knows nothing of it."""
    EVENTS.append(f"blocking {given.get('id')}")
    blocking_sleep(float(given["s"]))
    return answer(start_response)


def do_spins(given: Given, start_response: Start) -> Iterable[bytes]:
    end = time.monotonic() + float(given["s"])
    while time.monotonic() < end:
        pass
    return answer(start_response)


def do_sleeps(given: Given, start_response: Start) -> Iterable[bytes]:
    time.sleep(float(given["s"]))
    return answer(start_response)


def do_naps(given: Given, start_response: Start) -> Iterable[bytes]:
    """Many short waits, of which an exception meant for one of them hits one."""
    end = time.monotonic() + float(given["s"])
    while time.monotonic() < end:
        time.sleep(0.01)
    return answer(start_response)


def do_crashes(given: Given, start_response: Start) -> Iterable[bytes]:
    os.kill(os.getpid(), int(given["signal"]))
    time.sleep(30)
    return answer(start_response)


def do_events(given: Given, start_response: Start) -> Iterable[bytes]:
    return answer(start_response, EVENTS)


def do_made(given: Given, start_response: Start) -> Iterable[bytes]:
    return answer(start_response, made)


def do_pid(given: Given, start_response: Start) -> Iterable[bytes]:
    return answer(start_response, os.getpid())


def application(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
    given = dict(parse_qsl(environ["QUERY_STRING"]))
    name = environ["PATH_INFO"].strip("/")
    if name == "outlived":
        KEPT["input"] = environ["wsgi.input"]
    return DEEDS[name](given, start_response)


DEEDS: dict[str, Callable[[Given, Start], Iterable[bytes]]] = {
    name.removeprefix("do_"): function for name, function in list(globals().items()) if name.startswith("do_")
}
