"""What a mold must not have is found, and named, and what is harmless is not."""

from __future__ import annotations

import _thread
import asyncio
import gc
import os
import select
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
from tricorn.errors import BootError
from tricorn.workers import fork_audit
from tricorn.workers.fork_audit import REFORK, Audit

from tests.harness.cases import with_each
from tests.harness.deadline import until
from tests.harness.interpreter import python
from tests.harness.needs import needs
from tests.harness.postgres import Postgres, postgres

__all__ = ["postgres"]


def names_beyond(before: set[str]) -> Iterator[str]:
    """Names of threads that came later."""
    for number in set(os.listdir("/proc/self/task")) - before:
        with suppress(OSError):
            yield Path(f"/proc/self/task/{number}/comm").read_text().strip()


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> Audit:
    """This process has threads of the tests' own."""
    mine = {*threading.enumerate()}
    before = list(fork_audit.event_loops())
    everybody, loops = threading.enumerate, fork_audit.event_loops
    monkeypatch.setattr(fork_audit.threading, "enumerate", lambda: [each for each in everybody() if each not in mine])
    monkeypatch.setattr(fork_audit, "event_loops", lambda: list(loops())[len(before) :])
    native = set(os.listdir("/proc/self/task"))
    monkeypatch.setattr(fork_audit, "thread_names", lambda: names_beyond(native))
    monkeypatch.setattr(fork_audit, "PAUSES", (0.001,))
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


@contextmanager
def thread_of(module: str) -> Iterator[None]:
    over = threading.Event()

    def work() -> None:
        over.wait()

    work.__module__ = module
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


NOTICE_FORKS = ("datadog.dogstatsd.base", "ddtrace.internal.writer", "elasticapm.transport.http", "sentry_sdk.worker")


@with_each("module", NOTICE_FORKS)
def test_threads_of_libraries_that_notice_forks_may_be_there(audit: Audit, module: str) -> None:
    with thread_of(module):
        audit.check()


ONCE_ONLY = {
    "psycopg_pool.pool": "psycopg_pool: close the pool in the hook mold_ready and create another in post_worker_init",
    "pymongo.periodic_executor": "PyMongo: close the client in the hook mold_ready",
    "newrelic.core.agent": "New Relic reports nothing from a fork .*Use it in the hook post_worker_init",
}


@with_each("module", tuple(ONCE_ONLY))
def test_threads_that_a_library_cannot_start_anew_have_a_cure_of_their_own(audit: Audit, module: str) -> None:
    with thread_of(module), pytest.raises(BootError, match=ONCE_ONLY[module]):
        audit.check()


@contextmanager
def native_thread(name: str) -> Iterator[None]:
    """A thread that `threading` knows nothing of."""
    over, has_name = threading.Event(), threading.Event()

    def work() -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
        has_name.set()
        over.wait()

    thread = _thread.start_new_thread(work, ())
    has_name.wait()
    try:
        yield
    finally:
        over.set()
        until(lambda: thread not in sys._current_frames(), "the thread ends")


NATIVE = {
    "rdk:broker1": "threads of librdkafka.* close producers and consumers in the hook mold_ready",
    "libvips worker": "threads of libvips.* 15 seconds after the last image.* Use it in the hook post_worker_init",
    "tokio-rt-worker": "threads of tokio.* cannot be stopped. Use it in the hook post_worker_init",
    "polars-3": "threads of polars",
}


@with_each("name", tuple(NATIVE))
def test_threads_of_native_libraries(audit: Audit, name: str) -> None:
    with native_thread(name), pytest.raises(BootError, match=NATIVE[name]):
        audit.check()


def test_the_runtime_of_datadog_may_be_there(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        native_thread("tokio-rt-worker"),
        closing(select.epoll()),
        socket.create_server(("127.0.0.1", 0)) as agent,
        socket.socket() as client,
    ):
        client.connect(agent.getsockname())
        port = agent.getsockname()[1]
        listening = f"a socket that listens at 127.0.0.1:{port}"
        assert names(audit) == ["threads of tokio", listening, f"a connection to 127.0.0.1:{port}"]
        monkeypatch.setitem(sys.modules, "ddtrace", ModuleType("ddtrace"))
        monkeypatch.setenv("DD_TRACE_AGENT_URL", f"http://127.0.0.1:{port}/")
        assert names(audit) == [listening]
        monkeypatch.setenv("DD_TRACE_AGENT_URL", "")
        monkeypatch.setenv("DD_TRACE_AGENT_PORT", str(port))
        assert names(audit) == [listening]
        monkeypatch.setenv("DD_TRACE_AGENT_PORT", "8126")
        assert names(audit) == [listening, f"a connection to 127.0.0.1:{port}"]


def test_a_native_thread_that_has_ended_is_gone(audit: Audit) -> None:
    """Before Python 3.13 it stays in `threading.enumerate()`."""
    has_asked = threading.Event()
    thread = _thread.start_new_thread(lambda: (threading.current_thread(), has_asked.set()), ())
    has_asked.wait()
    until(lambda: thread not in sys._current_frames(), "the thread ends")
    until(lambda: not names(audit), "nothing is found")


def test_a_cuda_context(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda: Any = ModuleType("torch.cuda")
    cuda.is_initialized = lambda: False
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
    audit.check()
    cuda.is_initialized = lambda: True
    with pytest.raises(BootError, match="a CUDA context of PyTorch"):
        audit.check()


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
    path = os.path.join(tmp_path, ".s.PGSQL.5432")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(path)
        listener.listen()
        client.connect(path)
        assert f"a connection to postgresql {path}" in names(audit)


def test_a_connection_is_named_by_the_usual_service_of_its_port(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fork_audit.PORTS[5432] == "postgresql"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setitem(fork_audit.PORTS, port, "redis")
        with socket.create_connection(("127.0.0.1", port)):
            assert f"a connection to redis 127.0.0.1:{port}" in names(audit)


def test_a_socket_of_the_kernel_is_harmless(audit: Audit) -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.bind((0, 0))
        audit.check()


def test_datagrams_pairs_and_files_are_harmless(audit: Audit) -> None:
    pair = socket.socketpair()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, pair[0], pair[1], open(__file__):
        datagrams.connect(("127.0.0.1", 9))
        audit.check()


def test_what_was_there_before_is_not_of_the_application() -> None:
    with socket.create_server(("127.0.0.1", 0)):
        assert not [name for name in names(Audit()) if "listens" in name]


def test_a_worker_says_which_files_are_the_servers(audit: Audit) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mine, socket.create_server(("127.0.0.1", 0)) as other:
        own = fork_audit.open_files().keys() - {other.fileno()}
        assert mine.fileno() in own
        of_worker = Audit(REFORK, own)
        assert names(of_worker) == [f"a socket that listens at 127.0.0.1:{other.getsockname()[1]}"]
        with pytest.raises(BootError, match=r"^The worker \(refork\) cannot be forked: it has a socket"):
            of_worker.check()


def test_the_cure_names_the_hook_of_the_process(audit: Audit) -> None:
    own = fork_audit.open_files().keys()
    with thread_of("shop"):
        for each, hook in ((audit, "mold_ready"), (Audit(REFORK, own), "before_refork")):
            with pytest.raises(BootError, match=f"Stop threads in the hook {hook} "):
                each.check()


def test_what_ends_soon_is_waited_for(audit: Audit) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closes = iter((lambda: None, listener.close))
        audit.check(lambda: next(closes)())
        assert next(closes, None) is None


class Holder:
    """Part of a reference cycle."""

    def __init__(self) -> None:
        self.itself = self
        self.listener = socket.create_server(("127.0.0.1", 0))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_socket_of_an_object_that_nobody_has_is_closed(audit: Audit) -> None:
    gc.disable()
    try:
        Holder()
        assert len(names(audit)) == 1
        audit.check()
    finally:
        gc.enable()


REAL = """
import sys
from tricorn.errors import BootError
from tricorn.workers.fork_audit import REFORK, Audit, open_files

own = list(open_files())


def refused():
    try:
        Audit(REFORK, own).check()
    except BootError as error:
        return str(error)
    return ""
"""


def in_process(code: str, *arguments: str) -> None:
    python(REAL + dedent(code), *arguments, alias="gthread")


def test_channels_of_grpc_until_they_are_closed() -> None:
    needs("grpc")
    code = """
    import os

    import grpc

    assert refused() == ""  # the import does nothing
    channel = grpc.insecure_channel("127.0.0.1:1")
    error = refused()
    assert error.startswith("The worker (refork) cannot be forked: it has threads of gRPC. gRPC: close channels"), error
    channel.close()
    assert refused() == ""
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == 0
    else:
        with grpc.insecure_channel("127.0.0.1:1") as channel:
            try:
                channel.unary_unary("/a/b")(b"", timeout=30)
            except grpc.RpcError as error:
                os._exit(0 if error.code() is grpc.StatusCode.UNAVAILABLE else 1)
        os._exit(2)
    """
    in_process(code)


def test_a_client_of_pymongo_until_it_is_closed() -> None:
    needs("pymongo")
    code = """
    from pymongo import MongoClient
    from pymongo.errors import InvalidOperation

    client = MongoClient("mongodb://127.0.0.1:1", serverSelectionTimeoutMS=1)
    error = refused()
    assert "it has the thread 'pymongo_server_monitor_thread'" in error, error
    assert "PyMongo: close the client in the hook before_refork and create another" in error, error
    client.close()
    assert refused() == ""
    try:
        client.admin.command("ping")
    except InvalidOperation:  # as the cure says
        sys.exit(0)
    sys.exit("a closed client can be used")
    """
    in_process(code)


def test_a_pool_of_psycopg_until_it_is_closed(postgres: Postgres) -> None:
    needs("psycopg_pool")
    code = """
    import psycopg
    from psycopg_pool import ConnectionPool

    pool = ConnectionPool(sys.argv[1], min_size=1, open=True)
    pool.wait()
    error = refused()
    assert "(psycopg_pool.pool.ConnectionPool.worker)" in error and "a connection to postgresql" in error, error
    assert "psycopg_pool: close the pool in the hook before_refork and create another" in error, error
    pool.close()
    assert refused() == ""
    try:
        pool.open()
    except psycopg.OperationalError:  # as the cure says
        sys.exit(0)
    sys.exit("a closed pool can be opened")
    """
    in_process(code, postgres.dsn())


def test_producers_of_kafka() -> None:
    needs("confluent_kafka")
    code = """
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    assert "threads of librdkafka. Kafka: close" in refused()
    del producer
    assert refused() == ""
    """
    in_process(code)
