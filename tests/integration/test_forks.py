"""An application may fork: its child is no worker, and nothing of the server's ends or lives with it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from tests.harness import Server, Wire, each, proc, until
from tests.harness.needs import needs
from tests.harness.site import replaced, rests

pytestmark = pytest.mark.beyond_reference("there a child answers on its parent's connection, and serves on")

APPLICATIONS = {
    "sync": "forking:wsgi",
    "gthread": "forking:wsgi",
    "gevent": "forking:wsgi",
    "eventlet": "forking:wsgi",
    "asgi": "forking:asgi",
    "tornado": "forking:tornado()",
    "aiohttp": "forking:aiohttp()",
}
ALL = pytest.mark.parametrize("worker_class", each(*APPLICATIONS))
LOOPS = pytest.mark.parametrize("worker_class", each("asgi", "tornado", "aiohttp"))
WSGI = pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "eventlet"))

ENDS = {"exits": 7, "text": 1, "raises": 1, "leaves": 9, "returns": 0}
"""What a child does, and its status."""


def ends(worker_class: str, where: str = "") -> list[int]:
    """aiohttp makes a response of an exception in a handler, which returns then."""
    is_handled = worker_class == "aiohttp" and where != "executor"
    return list((ENDS | ({"raises": 0} if is_handled else {})).values())


def serving(worker_class: str, **options: object) -> Server:
    return Server(APPLICATIONS[worker_class], worker_class=worker_class, access_logfile="-", **options)


def lines(server: Server) -> int:
    """Lines of the access log."""
    return len(server.out.matching(r"GET /\?"))


def ask_all(server: Server, *queries: str) -> list[dict[str, object]]:
    """The answers to these, on one connection. A byte too much would be read as part of the next one."""
    answers = []
    worker = server.worker_pid()
    with server.connect() as wire:
        for number, query in enumerate([*queries, "how="]):
            reply = wire.get(f"/?{query}&id={number}")
            assert reply.status == 200, reply.text
            told = reply.json()
            assert (told["pid"], told["id"]) == (worker, str(number))
            answers.append(told)
    until(lambda: lines(server) == len(answers), "one line for each request")
    assert server.worker_pid() == worker
    return answers[:-1]


def listen(port: int) -> None:
    """Nothing else listens there."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()


def end(*children: int) -> None:
    """By a signal that workers handle, and their children do not."""
    for child in children:
        os.kill(child, signal.SIGTERM)
    until(lambda: not any(map(proc.is_running, children)), "the children end")


@ALL
def test_a_child_ends_where_it_comes_back_and_answers_nobody(worker_class: str) -> None:
    with serving(worker_class) as server:
        answers = ask_all(server, *(f"how={how}" for how in ENDS))
        assert [told["status"] for told in answers] == ends(worker_class)
        assert len(server.log.matching("the child says why")) == 1
        assert len(server.log.matching("ValueError: the child failed")) == 1
        assert not server.log.matching("Worker exiting")
        assert worker_class == "aiohttp" or not server.log.matching("Error handling request")


@LOOPS
@pytest.mark.parametrize("where", ["later", "executor"])
def test_nor_does_it_go_on_with_its_parents_loop(worker_class: str, where: str) -> None:
    with serving(worker_class) as server:
        answers = ask_all(server, *(f"how={how}&where={where}" for how in ENDS))
        assert [told["status"] for told in answers] == ends(worker_class, where)


@LOOPS
@pytest.mark.parametrize("where", ["at_once", "later"])
def test_a_child_that_awaits_has_no_loop_and_says_so(worker_class: str, where: str) -> None:
    with serving(worker_class) as server:
        (told,) = ask_all(server, f"how=awaits&where={where}")
        assert told["status"] == 1
        server.log.wait("a process that was forked in a coroutine ended where it awaited")


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_both_loops_are_left_to_the_parent(kind: str) -> None:
    needs(kind)
    with serving("asgi", asgi_loop=kind) as server:
        queries = [f"how={how}&where={where}" for how in ENDS for where in ("at_once", "later", "executor")]
        answers = ask_all(server, *queries)
        assert [told["status"] for told in answers] == [status for status in ENDS.values() for _ in range(3)]


@WSGI
def test_a_child_that_is_forked_within_a_response_sends_nothing_of_it(worker_class: str) -> None:
    with serving(worker_class) as server:
        answers = ask_all(server, "how=yields", "how=yields")
        assert all(told["pid"] == server.worker_pid() for told in answers)


@ALL
def test_the_standard_librarys_children_are_what_they_always_are(worker_class: str) -> None:
    with serving(worker_class) as server:
        process, terminated, program, session = ask_all(
            server, "how=process", "how=terminated", "how=program", "how=session"
        )
        assert (process["result"], process["status"]) == (144, 5)
        assert terminated["status"] == -15
        assert (program["result"], program["status"]) == ("hello\n", 3)
        assert session["status"] == 4


def test_gevent_hears_of_a_first_child_that_ends_at_once() -> None:
    with serving("gevent") as server:
        (told,) = ask_all(server, "how=at_once")
        assert told["status"] == 6


@ALL
def test_a_child_that_lives_on_holds_nothing_of_the_server(worker_class: str) -> None:
    """Neither the port nor a connection: what the parent closes is closed."""
    with serving(worker_class) as server, server.connect() as idle:
        idle.get("/?id=idle")
        with server.connect() as wire:
            told = wire.get("/?how=lives", ("Connection", "close")).json()
            assert wire.ended() == b"", "the connection ends though the child lives"
        child = told["child"]
        server.signal(signal.SIGTERM)
        assert idle.ended() == b""
        assert server.wait_exit(outlived=True) == 0
        assert proc.is_running(child)
        listen(server.port)
        end(child)


@pytest.mark.parametrize("worker_class", each("gevent", "eventlet"))
def test_a_child_that_waits_is_not_woken_for_connections(worker_class: str) -> None:
    """It has a hub of its own: in its parent's it would take the wake-ups of all workers, and outlive the parent."""
    with serving(worker_class) as server:
        with server.connect() as wire:
            child = wire.get("/?how=sleeps").json()["child"]
        replaced(server, lambda: os.kill(server.worker_pid(), signal.SIGKILL))
        for number in range(3):
            for pid in (child, server.worker_pid()):
                until(lambda pid=pid: rests(pid), "it waits for something to happen")
            with server.connect() as wire:
                assert wire.get(f"/?id={number}").json()["id"] == str(number)
        end(child)


CLIENTS, REQUESTS, EVERY = 6, 30, 5


@pytest.mark.parametrize("reuse_port", [False, True], ids=["one_listener", "reuse_port"])
def test_a_program_that_lives_on_does_not_hold_the_port(reuse_port: bool) -> None:
    with serving("sync", extra=["--reuse-port"] if reuse_port else []) as server:
        child = server.get("/?how=spawned&id=0").json()["child"]
        server.signal(signal.SIGTERM)
        assert server.wait_exit(outlived=True) == 0
        assert proc.is_running(child)
        listen(server.port)
        end(child)


@ALL
def test_children_under_load_take_no_request_and_add_no_answer(worker_class: str) -> None:
    """Each client reads its own answers, in order, from the one worker; the log has one line for each of them."""
    ways = [*ENDS, "lives"]
    children: list[int] = []
    wrong: list[object] = []

    def ask(client: int) -> None:
        try:
            with server.connect() as wire:
                for number in range(REQUESTS):
                    id_ = f"{client}-{number}"
                    how = f"&how={ways[(client + number // EVERY) % len(ways)]}" if number % EVERY == 0 else ""
                    children.extend(check(wire, f"/?id={id_}{how}", id_, worker))
        except BaseException as error:
            wrong.append(error)

    with serving(worker_class) as server:
        worker = server.worker_pid()
        clients = [threading.Thread(target=ask, args=(client,)) for client in range(CLIENTS)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join(60)
        assert not wrong
        until(lambda: lines(server) == CLIENTS * REQUESTS, "one line for each request")
        server.signal(signal.SIGTERM)
        assert server.wait_exit(outlived=True) == 0
        assert children
        assert all(proc.is_running(child) for child in children)
        listen(server.port)
        end(*children)


def check(wire: Wire, target: str, id_: str, worker: int) -> list[int]:
    """The child that lives on, if there is one."""
    reply = wire.get(target)
    assert reply.status == 200, reply.text
    told = reply.json()
    assert (told["id"], told["pid"]) == (id_, worker)
    return [told["child"]] if "child" in told and "status" not in told else []


@pytest.mark.parametrize("worker_class", each("sync", "gevent", "asgi"))
def test_a_child_that_is_forked_while_the_application_is_loaded_is_no_worker(worker_class: str, tmp_path: Path) -> None:
    (tmp_path / "at_import.py").write_text(
        "import os, signal, sys\n"
        "from forking import *\n"
        "if os.fork() == 0:\n    signal.pause()\n"
        "if os.fork() == 0:\n    sys.exit(3)\n"
    )
    application = "at_import" + APPLICATIONS[worker_class].removeprefix("forking")
    with Server(application, worker_class=worker_class, env={"PYTHONPATH": str(tmp_path)}) as server:
        worker = server.worker_pid()
        assert server.get("/").json()["pid"] == worker, "it is loaded, and has forked twice"
        until(lambda: len(proc.children(worker)) == 1, "one child lives, the other is gone")
        (child,) = proc.children(worker)
        server.signal(signal.SIGTERM)
        assert server.wait_exit(outlived=True) == 0
        assert proc.is_running(child)
        listen(server.port)
        end(child)
