"""Greenlets are used again; no request may be able to tell: nothing of one is left for the next, or reaches another."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness import CLOSE, GREEN, REFERENCE, Server, Wire, each, proc, until
from tests.harness.wire import Malformed, Reply, request

NO_MARKS = {
    "colour": "nothing" if REFERENCE else "of the import",
    "shade": None,
    "attribute": None,
    "known": None,
    "handled": "None",
}
NOTHING = NO_MARKS | {"green_local": [], "thread_local": [], "initialised": []}
NEXT_ID = itertools.count()


def green(worker_class: str, **options: Any) -> Server:
    env = {"GREEN": worker_class} | ({} if REFERENCE else {"COUNT_GREENLETS": "1"})
    return Server("green:application", worker_class=worker_class, env=env, **options)


@pytest.fixture(scope="module", params=each(*GREEN))
def running(request: pytest.FixtureRequest) -> Iterator[Server]:
    with green(request.param) as server:
        yield server


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    """One that is there after the test as it was before it, and has nothing in the application."""
    worker = running.worker_pids()
    yield running
    assert running.get("/light?id=after").json()["begins"] == NO_MARKS
    assert running.worker_pids() == worker, running.log.text[-3000:]


@pytest.fixture
def name() -> str:
    return f"n{next(NEXT_ID)}"


def own(id_: str) -> dict[str, object]:
    """All marks, as the request that left them sees them."""
    marks: dict[str, object] = {"colour": id_, "shade": id_, "attribute": id_, "known": id_, "handled": "None"}
    local = [["mark", id_]]
    return marks | {"green_local": local, "thread_local": local, "initialised": [id_]}


def events(server: Server) -> list[str]:
    return list(server.get("/events").json())


def noted(server: Server, event: str) -> None:
    until(lambda: event in events(server), f"{event!r} is noted")


def ended(wire: Wire) -> Reply | None:
    """What a request got that was ended from outside: an error page, or the end of its connection."""
    try:
        reply = wire.reply()
    except (Malformed, ConnectionError):
        return None
    assert reply.status == 500
    return reply


# What a request finds when it begins.


@pytest.mark.parametrize("fields", [(), CLOSE], ids=["keep_alive", "connection_per_request"])
@pytest.mark.beyond_reference("a greenlet there serves a whole connection")
def test_nothing_is_there_from_earlier_requests(server: Server, name: str, fields: Any) -> None:
    for nr in range(20):
        told = server.get(f"/marks?id={name}.{nr}", *fields).json()
        assert told == {"begins": NOTHING, "ends": own(f"{name}.{nr}")}
    with server.connect() as wire:
        for nr in range(20):
            told = wire.get(f"/marks?id={name}.{nr}").json()
            assert told == {"begins": NOTHING, "ends": own(f"{name}.{nr}")}


def test_nothing_comes_from_requests_that_wait(server: Server, name: str) -> None:
    wires = [server.connect() for _ in range(8)]
    for nr, wire in enumerate(wires):
        wire.send(request("GET", f"/marks?id={name}.{nr}&s=0.2", CLOSE))
    for nr, wire in enumerate(wires):
        assert wire.reply().json() == {"begins": NOTHING, "ends": own(f"{name}.{nr}")}
        wire.close()


@pytest.mark.beyond_reference("a greenlet there serves a whole connection")
def test_pipelined_requests_are_strangers(server: Server, name: str) -> None:
    with server.connect() as wire:
        wire.send(*(request("GET", f"/marks?id={name}.{nr}") for nr in range(20)))
        for nr in range(20):
            assert wire.reply().json() == {"begins": NOTHING, "ends": own(f"{name}.{nr}")}


def test_call_iteration_and_close_are_one_request(server: Server, name: str) -> None:
    wires = [server.connect() for _ in range(4)]
    for nr, wire in enumerate(wires):
        wire.send(request("GET", f"/stages?id={name}.{nr}"))
    for nr, wire in enumerate(wires):
        id_ = f"{name}.{nr}"
        assert wire.reply().text == f"{id_} {id_}\n" * 3
        noted(server, f"closed {id_} at its end {id_} ['{id_}']")
        wire.close()


def test_an_exception_that_is_being_handled_is_nobody_elses(server: Server, name: str) -> None:
    with server.connect() as wire:
        wire.send(request("GET", f"/handling?id={name}&s=0.3"))
        for _ in range(10):
            assert server.get("/light?id=x").json()["begins"] == NO_MARKS
            assert server.get("/marks?id=x").json()["begins"] == NOTHING
        assert wire.reply().json() == f"ValueError('{name}')"


def test_children_of_a_request_are_strangers_as_threads_are(server: Server, name: str) -> None:
    assert server.get(f"/spawned?id={name}").json() == {"children": [[]] * 3, "mine": [name, name]}


# The greenlet as the request's identity.


@pytest.mark.parametrize("how", ["", "fails", "streams"])
def test_who_is_linked_to_a_request_hears_of_its_end_once(server: Server, name: str, how: str) -> None:
    reply = server.get(f"/linked?id={name}&how={how}", *CLOSE)
    assert reply.status == (500 if how == "fails" else 200)
    noted(server, f"linked {name}")
    assert server.get("/light?id=x").json()["begins"] == NO_MARKS
    assert events(server).count(f"linked {name}") == 1


def test_a_weak_reference_to_it_dies_with_it(server: Server, name: str) -> None:
    server.get(f"/weak?id={name}", *CLOSE)
    until(lambda: server.get(f"/alive?id={name}").json() is False, "it dies")


@pytest.mark.beyond_reference("a greenlet there serves a whole connection")
def test_one_that_was_kept_is_dead_when_its_request_is_over(server: Server, name: str) -> None:
    with server.connect() as wire:
        wire.get(f"/keep?id={name}")
        until(lambda: wire.get(f"/dead?id={name}").json() is True, "it is dead")


@pytest.mark.parametrize("how", ["fails", "streams", "handled"])
def test_what_was_in_the_frames_of_a_failure_dies(server: Server, name: str, how: str) -> None:
    with server.connect() as wire:
        wire.send(request("GET", f"/fails?id={name}&how={how}"))
        wire.ended() if how == "streams" else wire.reply()
    until(lambda: server.get(f"/alive?id={name}").json() is False, "what it held dies, without the collector")
    if how != "handled":
        server.log.wait(f"failing marker {name}")


# Requests that are ended.

ENDED_BY = {"exit": "GreenletExit", "own": "Own", "error": "RuntimeError"}


@pytest.mark.parametrize("by", ENDED_BY)
@pytest.mark.parametrize("how", ["", "streams"])
def test_a_request_that_is_killed_is_the_only_one_that_ends(server: Server, name: str, how: str, by: str) -> None:
    with server.connect() as victim, server.connect() as other:
        victim.send(request("GET", f"/hold?id={name}&how={how}"))
        noted(server, f"holding {name}")
        other.send(request("GET", f"/marks?id={name}.other&s=0.5"))
        assert server.get(f"/kill?id={name}&by={by}").status == 200
        assert ended(victim) is None or not how, "a stream cannot become an error page"
        noted(server, f"ended {name} by {ENDED_BY[by]}")
        until(lambda: server.get(f"/dead?id={name}").json() is True, "its greenlet is dead")
        until(lambda: server.get(f"/alive?id={name}").json() is False, "what it held dies")
        assert other.reply().json() == {"begins": NOTHING, "ends": own(f"{name}.other")}


@pytest.mark.beyond_reference("GreenletExit leaves without a word")
def test_the_log_names_a_request_that_was_killed(server: Server, name: str) -> None:
    with server.connect() as victim:
        victim.send(request("GET", f"/hold?id={name}"))
        noted(server, f"holding {name}")
        server.get(f"/kill?id={name}")
        ended(victim)
    server.log.wait(r"Error handling request .*/hold")


def test_a_killed_request_may_clean_up_at_its_leisure(server: Server, name: str) -> None:
    with server.connect() as victim:
        victim.send(request("GET", f"/hold?id={name}&then=waits"))
        noted(server, f"holding {name}")
        server.get(f"/kill?id={name}")
        noted(server, f"waited {name}")
        ended(victim)


def test_a_request_that_will_not_be_killed_is_answered(server: Server, name: str) -> None:
    with server.connect() as victim:
        victim.send(request("GET", f"/hold?id={name}&then=goes_on"))
        noted(server, f"holding {name}")
        server.get(f"/kill?id={name}")
        assert victim.reply().json() == "it went on"


def test_a_request_may_kill_itself(server: Server) -> None:
    with server.connect() as wire:
        wire.send(request("GET", "/kill?id=self"))
        ended(wire)


@pytest.mark.beyond_reference("a greenlet there serves a whole connection")
def test_killing_one_that_is_over_hurts_nobody(server: Server, name: str) -> None:
    """Neither the request that runs where it ran, nor those that come."""
    with server.connect() as wire, server.connect() as other:
        for nr in range(5):
            wire.get(f"/keep?id={name}")
            wire.send(request("GET", f"/marks?id={name}.{nr}&s=0.1"))
            assert other.get(f"/kill?id={name}").json() is True
            assert wire.reply().json() == {"begins": NOTHING, "ends": own(f"{name}.{nr}")}


@pytest.mark.parametrize(
    ("how", "says"), [("caught", "caught"), ("other", "caught"), ("silent", "in time"), ("forgotten", "in time")]
)
def test_timeouts_within_a_request(server: Server, how: str, says: str) -> None:
    wires = [server.connect() for _ in range(4)]
    for wire in wires:
        wire.send(request("GET", f"/timeout?how={how}&s=0.1"))
    with server.connect() as other:
        assert other.get("/marks?id=other&s=0.3").json()["begins"] == NOTHING
    for wire in wires:
        assert wire.reply().json() == says
        wire.close()


@pytest.mark.beyond_reference("an error page follows what was sent of the answer")
def test_a_timeout_nobody_catches_ends_its_request(server: Server) -> None:
    reply = server.get("/timeout?how=uncaught&s=0.05")
    assert (reply.status, reply.closes) == (500, True)
    server.log.wait("Error handling request.*/timeout")
    with server.connect() as wire:
        wire.send(request("GET", "/timeout?how=streams&s=0.05"))
        assert wire.ended().endswith(b"begun\r\n"), "no last chunk"


@pytest.mark.beyond_reference("a greenlet there serves a whole connection")
def test_a_timeout_that_was_forgotten_hits_nobody(server: Server, name: str) -> None:
    """It fires when its request is long over, and others have come since: on its connection, and on others."""
    with server.connect() as wire, server.connect() as other:
        for nr in range(4):
            assert wire.get("/timeout?how=forgotten&s=0.1").json() == "in time"
            other.send(request("GET", f"/marks?id={name}.{nr}.other&s=0.3"))
            assert wire.get(f"/marks?id={name}.{nr}&s=0.3").json() == {"begins": NOTHING, "ends": own(f"{name}.{nr}")}
            assert other.reply().json() == {"begins": NOTHING, "ends": own(f"{name}.{nr}.other")}


KINDS = ["SystemExit", "GreenletExit", "KeyboardInterrupt", "GeneratorExit", "Own", "Timeout"]


@pytest.mark.beyond_reference("SystemExit and KeyboardInterrupt end the worker there")
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_request_raises_ends_only_itself(server: Server, name: str, kind: str) -> None:
    with server.connect() as other:
        other.send(request("GET", f"/marks?id={name}&s=0.3"))
        assert server.get(f"/raise?kind={kind}").status == 500
        server.log.wait("Error handling request.*/raise")
        with server.connect() as wire:
            wire.send(request("GET", f"/raise?kind={kind}&streams=1"))
            assert wire.ended().endswith(b"begun\r\n"), "no last chunk"
        assert other.reply().json() == {"begins": NOTHING, "ends": own(name)}


@pytest.mark.beyond_reference("what is written late lands in the next answer of the connection")
@pytest.mark.parametrize("use", ["write", "start_response", "exc_info", "input"])
def test_what_outlives_its_request_cannot_write_into_another(server: Server, name: str, use: str) -> None:
    with server.connect() as wire:
        assert wire.get(f"/outlived?id={name}&use={use}").body == b"answer of " + name.encode()
        wire.send(request("GET", f"/marks?id={name}.next&s=0.2"))
        server.get(f"/after?id={name}")
        reply = wire.reply()
        assert (reply.status, reply.get("X-Late")) == (200, None)
        assert reply.json() == {"begins": NOTHING, "ends": own(f"{name}.next")}
        if use == "input":
            noted(server, f"used {name}: b''")
        else:
            until(lambda: [event for event in events(server) if event.startswith(f"refused {name}: ")], "it raises")
        assert wire.get("/light?id=x").json()["begins"] == NO_MARKS


# Many.

REQUESTS = 6_000
CLIENTS = 8


class Mixed:
    """`CLIENTS` connections, each with requests of every kind, one after the other; most of them leave no trace."""

    def __init__(self, server: Server, count: int, *, plain: bool = False) -> None:
        self.server = server
        self.count = count
        self.plain = plain
        self.wrong: list[str] = []
        self.lasting = 0
        """Requests whose greenlet cannot be used again."""
        threads = [threading.Thread(target=self._client, args=[nr], daemon=True) for nr in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"
        assert not self.wrong, self.wrong[:3]

    def _client(self, client: int) -> None:
        wire = self.server.connect()
        for nr in range(self.count // CLIENTS):
            try:
                goes_on = self._ask(wire, f"{client}.{nr}", 0 if self.plain else nr % 20)
            except (AssertionError, OSError) as error:
                self.wrong.append(f"{client}.{nr}: {error!r}")
                return
            if not goes_on:
                wire.close()
                wire = self.server.connect()
        wire.close()

    def _ask(self, wire: Wire, id_: str, kind: int) -> bool:
        match kind:
            case 3:
                assert wire.get(f"/fails?id=f{id_}").status == 500
                return False
            case 5 | 6:
                told = wire.get(f"/marks?id={id_}&s=0.002").json()
                self.lasting += 1
                assert told == {"begins": NOTHING, "ends": own(id_)}, told
            case 9:
                assert wire.get("/timeout?how=caught&s=0.002").json() == "caught"
                self.lasting += 1
            case 11:
                self.lasting += 1
                return wire.get("/kill?id=self").status != 500
            case 13:
                assert wire.get(f"/raise?kind={KINDS[int(id_.partition('.')[2]) // 20 % len(KINDS)]}").status == 500
                return False
            case 15:
                assert wire.get(f"/linked?id={id_}").status == 200
                self.lasting += 1
            case _:
                waits = "&s=0" if kind == 7 else ""
                told = wire.get(f"/light?id={id_}{waits}").json()
                assert told["begins"] == NO_MARKS, told
                assert told["ends"] == NO_MARKS | {"colour": id_, "shade": id_}, told
        return True


def made(server: Server) -> int:
    return int(server.get("/made").json())


@pytest.mark.beyond_reference("a greenlet there serves a whole connection")
@pytest.mark.timeout(120)
def test_thousands_of_requests_over_eight_connections(server: Server) -> None:
    """Of all kinds, of which most use greenlets again: as few are made as have to be, and memory stays where it was."""
    Mixed(server, 2000)
    worker = server.worker_pid()
    before, memory, descriptors = made(server), proc.private_bytes(worker), proc.descriptors(worker)
    load = Mixed(server, REQUESTS - 2000)
    # Those that fail may cost theirs as well.
    failed = (REQUESTS - 2000) // 20 * 3
    assert made(server) - before <= load.lasting + failed + 2 * CLIENTS
    until(lambda: proc.descriptors(worker) <= descriptors + 1, "descriptors are given back")
    assert proc.private_bytes(worker) - memory < 3 << 20


@pytest.mark.beyond_reference("a greenlet there serves a whole connection")
def test_requests_that_leave_no_trace_share_a_few_greenlets(server: Server) -> None:
    before = made(server)
    Mixed(server, 2000, plain=True)
    assert made(server) - before <= 2 * CLIENTS
