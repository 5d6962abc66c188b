"""Clients of event streams and of MCP stay on while workers come and go, and see no exception; nor does the log."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.applications.test_applications import COMPLAINTS, ENVIRONMENTS, HERE, START
from tests.harness.deadline import PATIENCE
from tests.harness.server import Lines, free_port

RELOADS = 3


@contextmanager
def program(name: str, command: list[str], directory: Path) -> Iterator[tuple[subprocess.Popen[bytes], Lines]]:
    programs = ENVIRONMENTS / name / "bin"
    environ = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(directory)}
    process = subprocess.Popen(
        command,
        executable=programs / command[0],
        cwd=directory,
        env=environ | {"PYTHONPATH": str(HERE / "client"), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        yield process, Lines(process.stdout)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.timeout(5 * PATIENCE)
@pytest.mark.parametrize("name", ["sse", "mcp", "fastmcp"])
def test_they_go_from_worker_to_worker(name: str, tmp_path: Path) -> None:
    directory, port = tmp_path / "app", free_port()
    shutil.copytree(HERE / name, directory, ignore=shutil.ignore_patterns("__pycache__"))
    serve = ["tricorn", "-b", f"127.0.0.1:{port}", "-w", "2", "--graceful-timeout", "300", "main:app"]
    stay = ["python", "stay.py", str(port)]
    with ExitStack() as stack:
        server, log = stack.enter_context(program(name, serve, directory))
        log.wait("Ready: ", within=START)
        client, said = stack.enter_context(program(name, stay, directory))
        said.wait("begun", within=START)
        for reload in range(RELOADS):
            time.sleep(0.5)  # clients are at work
            server.send_signal(signal.SIGHUP)
            log.wait("Ready: ", count=reload + 2, within=START)
        assert client.stdin is not None
        client.stdin.close()
        assert client.wait(PATIENCE) == 0, said.text
        said.wait("ended")
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0, log.text
    assert not [line for line in log.lines if COMPLAINTS.search(line)], log.text


@pytest.mark.timeout(5 * PATIENCE)
def test_sessions_of_mcp_end_with_their_workers_and_none_hangs(tmp_path: Path) -> None:
    """Of the revision with sessions: workers are replaced all the time (`max_requests`)."""
    directory, port = tmp_path / "app", free_port()
    shutil.copytree(HERE / "mcp", directory, ignore=shutil.ignore_patterns("__pycache__"))
    serve = ["tricorn", "-b", f"127.0.0.1:{port}", "-w", "2", "--max-requests", "60", "--graceful-timeout", "1"]
    with ExitStack() as stack:
        server, log = stack.enter_context(program("mcp1", [*serve, "--access-logfile", "-", "main:app"], directory))
        log.wait(r"Requests of one session go to one worker \(mcp")
        client, said = stack.enter_context(program("mcp1", ["python", "keep.py", str(port)], directory))
        said.wait(r"^after \d+ calls", count=6, within=START)
        assert client.stdin is not None
        client.stdin.close()
        assert client.wait(PATIENCE) == 0, said.text
        said.wait("ended")
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0, log.text
    # The application's own answer is 404, of which the client makes these words.
    ends = [line for line in said.lines if line.startswith("after ")]
    assert all(line.endswith(" calls in 1: Session terminated") for line in ends), ends
    # The package writes a traceback of its own when a client ends a session that has a stream open.
    assert not log.matching(r"\[(ERROR|CRITICAL)\]"), log.text
    assert not log.matching(r'HTTP/1.1" 5\d\d '), log.text
