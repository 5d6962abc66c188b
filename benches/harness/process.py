"""Processes under measurement: pinned to one core, in a session of their own, stopped whatever happens."""

from __future__ import annotations

import ctypes
import http.client
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from benches.harness import proc

ROOT = Path(__file__).resolve().parent.parent.parent
SERVER_CORE = 0
LOAD_CORE = min(1, (os.cpu_count() or 1) - 1)
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


class DidNotServe(Exception):
    """The server could not be started, or gave a wrong answer; the text is what is reported for it."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def pinned(*cores: int) -> None:
    """Runs in the child before exec: its core (or cores), many descriptors, and gone when the harness is gone."""
    os.sched_setaffinity(0, cores)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def become_generator(*, realtime: bool) -> None:
    """This process makes the load: on its core, with as many connections as the system lets it have."""
    os.sched_setaffinity(0, {LOAD_CORE})
    if realtime:
        before_other_work()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def before_other_work() -> None:
    """This process and all its children run before anything else on the machine: a shared one is then nearly quiet."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        sys.exit("only root may run before other work")


class Server:
    """A server and all its descendants: `with Server(command, port) as server: ...`"""

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        environment: Mapping[str, str] | None = None,
        cores: Iterable[int] = (SERVER_CORE,),
    ) -> None:
        self.command = list(command)
        self.port = port
        self.cores = tuple(cores)
        self.environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}", **(environment or {})}
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the server)

    def __enter__(self) -> Server:  # noqa: PYI034 (typing.Self is younger than Python 3.10)
        self.process = subprocess.Popen(
            self.command,
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: pinned(*self.cores),
        )
        try:
            self._wait_until_listening()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def pids(self) -> list[int]:
        return proc.session_members(self.process.pid)

    def stop(self) -> None:
        # Only the first process is told: arbiters stop their workers. Whatever is left after that is killed.
        if self.process.poll() is None:
            self.process.terminate()
        deadline = time.monotonic() + 5
        while self.pids() and time.monotonic() < deadline:
            self.process.poll()
            time.sleep(0.02)
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        self.output.close()

    def said(self) -> str:
        """The last line that is not blank of what the server printed."""
        self.output.seek(0)
        lines = self.output.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip().replace(f"{ROOT}/", "") if lines else "(it said nothing)"

    def _wait_until_listening(self) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise DidNotServe(f"left with status {self.process.returncode}: {self.said()}")
            try:
                self.ask("GET", "/", b"")
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
            else:
                return
        raise DidNotServe(f"no answer within 20 s: {self.said()}")

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request(method, path, body=body or None, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
