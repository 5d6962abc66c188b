"""What a thread waits for: peers, files, libraries, loops."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.deadline import until
from tests.harness.needs import needs
from tests.harness.postgres import Postgres
from tests.integration.doctor.patient import Patient, functions


@pytest.fixture
def black_hole() -> Iterator[str]:
    """Accepts in the kernel, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


def test_a_server_that_does_not_answer_is_named(tmp_path: Path, black_hole: str) -> None:
    code = """
    import socket, sys
    sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    sock.recv(10)  # here
    """
    with Patient(tmp_path, code, black_hole) as patient:
        thread = patient.verdict("BLOCKED_SYSCALL")
    assert thread["call"]["name"] == "recvfrom"
    assert thread["call"]["descriptors"][0]["what"] == f"TCP to 127.0.0.1:{black_hole}"
    assert f"TCP to 127.0.0.1:{black_hole}" in thread["sentence"]


def test_descriptors_of_poll_and_select(tmp_path: Path, black_hole: str) -> None:
    for call in ("select.select([sock], [], [])", "poll.poll()"):
        code = f"""
        import select, socket, sys
        sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        {call}  # here
        """
        with Patient(tmp_path, code, black_hole) as patient:
            thread = patient.verdict("BLOCKED_SYSCALL")
        names = [each["what"] for each in thread["call"]["descriptors"]]
        assert names == [f"TCP to 127.0.0.1:{black_hole}"], call


def test_a_connection_that_is_not_made(tmp_path: Path) -> None:
    """The queue of the listener is full, so that the kernel asks again and again."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            code = """
            import socket, sys
            for _ in range(9):
                sock = socket.socket()
                sock.connect(("127.0.0.1", int(sys.argv[1])))  # here
            """
            with Patient(tmp_path, code, str(port)) as patient:
                thread = patient.here(lambda thread: thread["call"] and thread["call"]["name"] == "connect")
    assert thread["call"]["detail"] == f"to 127.0.0.1:{port}"


def test_a_lock_of_a_file(tmp_path: Path) -> None:
    code = """
    import fcntl, sys
    one, other = open(sys.argv[1], "w"), open(sys.argv[1], "w")
    fcntl.flock(one, fcntl.LOCK_EX)
    fcntl.flock(other, fcntl.LOCK_EX)  # here
    """
    with Patient(tmp_path, code, str(tmp_path / "lock")) as patient:
        thread = patient.verdict("BLOCKED_SYSCALL")
    assert thread["call"]["name"] == "flock"
    assert thread["call"]["descriptors"][0]["what"] == str(tmp_path / "lock")
    assert "for a lock of the file" in thread["sentence"]


def test_a_query_names_libpq_and_the_server(tmp_path: Path) -> None:
    needs("psycopg2")
    code = """
    import sys, psycopg2
    cursor = psycopg2.connect(sys.argv[1]).cursor()
    cursor.execute("SELECT pg_sleep(600)")  # here
    """
    with Postgres() as server, Patient(tmp_path, code, server.dsn(tcp=True)) as patient:
        thread = patient.verdict("BLOCKED_SYSCALL")
    assert thread["call"]["descriptors"][0]["what"] == f"TCP to 127.0.0.1:{server.port}"
    assert thread["native"]["library"]["name"] == "libpq"
    assert thread["native"]["library"]["function"].startswith("PQ")
    assert any(function.startswith("PQ") for function in functions(thread))


def test_a_library_that_is_loaded_during_the_look_is_named(tmp_path: Path, black_hole: str) -> None:
    needs("confluent_kafka")
    code = """
    import os, sys, time
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.01)
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{sys.argv[1]}", "log_level": 0})
    producer.produce("topic", b"x")
    producer.flush(600)  # here
    """
    thread = None
    for window in (1.0, 4.0, 16.0):  # on a busy machine the import takes longer than a second, or waits for a processor
        begin = tmp_path / f"begin-{window}"
        with Patient(tmp_path, code, black_hole, str(begin)) as patient, ThreadPoolExecutor(1) as pool:
            until(lambda patient=patient: any(map(patient.runs, patient.look(0.01)["threads"])), "it runs Python code")
            looker = pool.submit(threading.get_native_id).result()
            report = pool.submit(patient.look, window)
            until(lambda looker=looker: _sleeps(looker), "the look is in its window")
            begin.touch()
            thread = next(filter(patient.is_here, report.result()["threads"]), None)
        if thread is not None:
            break
    # A thread that has imported for half of the look is neither busy nor blocked: of that the verdict need not be sure.
    assert thread is not None, "it was not there in any of the windows"
    assert thread["native"]["library"]["name"] == "librdkafka"


def _sleeps(tid: int) -> bool:
    return "nanosleep" in Path(f"/proc/self/task/{tid}/wchan").read_text()


def test_a_flush_names_librdkafka(tmp_path: Path, black_hole: str) -> None:
    needs("confluent_kafka")
    code = """
    import sys
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{sys.argv[1]}", "log_level": 0})
    producer.produce("topic", b"x")
    producer.flush(600)  # here
    """
    with Patient(tmp_path, code, black_hole) as patient:
        thread = patient.verdict("BLOCKED_SYSCALL")
    assert thread["native"]["library"]["name"] == "librdkafka"
    assert thread["native"]["library"]["function"] == "rd_kafka_flush"
    assert "Producer_flush" in functions(thread), "static functions are named where the file has them"


def test_doctor_finds_waiting_greenlets(tmp_path: Path) -> None:
    """The greenlet that blocks is told, and a hub that has nothing to do is idle."""
    needs("gevent")
    blocks = """
    import gevent, time
    def innocent():
        while True:
            gevent.sleep(0.01)
    def guilty():
        gevent.sleep(0.1)
        time.sleep(600)  # here
    gevent.spawn(innocent)
    gevent.spawn(guilty).join()
    """
    with Patient(tmp_path, blocks) as patient:
        thread = patient.verdict("BLOCKED_SYSCALL")
        assert thread["python"][0]["function"] == "guilty"
    idles = "import gevent\ngevent.sleep(600)\n"
    with Patient(tmp_path, idles) as patient:
        patient.line = 0
        patient.is_here = lambda thread: thread["main"]  # type: ignore[method-assign]
        thread = patient.verdict("IDLE")
        assert thread["python"][0]["function"] == "Hub.run"


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("import asyncio\nasyncio.run(asyncio.sleep(600))  # here\n", "IDLE"),
        ("import asyncio, uvloop\nuvloop.run(asyncio.sleep(600))  # here\n", "IDLE"),
        ("import subprocess\nsubprocess.run(['sleep', '600'], capture_output=True)  # here\n", "BLOCKED_SYSCALL"),
    ],
    ids=["asyncio", "uvloop", "subprocess"],
)
def test_what_is_idle_and_what_only_looks_like_it(tmp_path: Path, code: str, verdict: str) -> None:
    with Patient(tmp_path, code) as patient:
        patient.verdict(verdict)


def test_a_process_that_is_stopped(tmp_path: Path) -> None:
    import signal

    with Patient(tmp_path, "import time\ntime.sleep(600)  # here\n") as patient:
        patient.here()
        patient._process.send_signal(signal.SIGSTOP)
        patient.verdict("STOPPED")
