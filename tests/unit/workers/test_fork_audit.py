"""What a mold must not have is found, and named, and what is harmless is not."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
from contextlib import closing

import pytest
from tricorn.errors import BootError
from tricorn.workers import fork_audit
from tricorn.workers.fork_audit import Audit


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> Audit:
    """This process has threads of the tests' own."""
    mine = {*threading.enumerate()}
    before = list(fork_audit.event_loops())
    everybody, loops = threading.enumerate, fork_audit.event_loops
    monkeypatch.setattr(fork_audit.threading, "enumerate", lambda: [each for each in everybody() if each not in mine])
    monkeypatch.setattr(fork_audit, "event_loops", lambda: list(loops())[len(before) :])
    return Audit()


def names(audit: Audit) -> list[str]:
    return [name for name, _ in audit.findings()]


def test_nothing_is_found_where_nothing_is(audit: Audit) -> None:
    audit.check()


def poll_for_jobs(over: threading.Event) -> None:
    over.wait()


def test_threads_have_their_names_and_what_they_run(audit: Audit) -> None:
    over = threading.Event()
    thread = threading.Thread(target=poll_for_jobs, args=(over,), name="poller")
    thread.start()
    try:
        assert names(audit) == [f"the thread 'poller' ({__name__}.poll_for_jobs)"]
        with pytest.raises(BootError, match=r"cannot be forked: it has the thread 'poller'.* post_worker_init"):
            audit.check()
    finally:
        over.set()
        thread.join()
    audit.check()


def test_threads_of_libraries_that_notice_forks_may_be_there(audit: Audit) -> None:
    over = threading.Event()

    def flush() -> None:
        over.wait()

    flush.__module__ = "ddtrace.internal.writer"
    thread = threading.Thread(target=flush)
    thread.start()
    audit.check()
    over.set()
    thread.join()


def test_an_open_event_loop(audit: Audit) -> None:
    loop = asyncio.new_event_loop()
    assert names(audit) == ["the event loop asyncio.unix_events._UnixSelectorEventLoop"]
    loop.close()
    audit.check()


def test_an_open_epoll(audit: Audit) -> None:
    with closing(select.epoll()):
        assert names(audit) == ["an open epoll(7), as of an event loop"]


def test_listeners_and_connections_by_address(audit: Audit) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        with socket.create_connection((host, port)), listener.accept()[0] as accepted:
            peer = accepted.getpeername()[1]
            assert sorted(names(audit)) == sorted(
                [
                    f"a socket that listens at 127.0.0.1:{port}",
                    f"a connection to 127.0.0.1:{port}",
                    f"a connection to 127.0.0.1:{peer}",
                ]
            )


def test_a_connection_to_a_unix_socket(audit: Audit, tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "s.PGSQL.5432")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(path)
        listener.listen()
        client.connect(path)
        assert f"a connection to {path}" in names(audit)


def test_datagrams_pairs_and_files_are_harmless(audit: Audit) -> None:
    pair = socket.socketpair()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, pair[0], pair[1], open(__file__):
        datagrams.connect(("127.0.0.1", 9))
        audit.check()


def test_what_was_there_before_is_not_of_the_application() -> None:
    with socket.create_server(("127.0.0.1", 0)):
        assert not [name for name in names(Audit()) if "listens" in name]
