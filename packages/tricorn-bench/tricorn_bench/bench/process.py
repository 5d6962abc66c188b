"""Servers under measurement: pinned to cores, in a session of their own, stopped whatever happens."""

from __future__ import annotations

import ctypes
import http.client
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tricorn_bench.bench import proc
from tricorn_bench.bench.errors import BenchError, DidNotServe

if TYPE_CHECKING:
    from typing_extensions import Self

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
BOOT_TIMEOUT = 30.0
"""Seconds until the first answer."""
PATIENCE = 5.0
"""Seconds between SIGTERM and SIGKILL."""

LINE = 400
"""Characters of a log line that are repeated."""

_libc = ctypes.CDLL(None, use_errno=True)


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def demand_free(port: int, host: str = "127.0.0.1") -> None:
    """Raises BenchError if a server could not listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise BenchError(
                f"Cannot listen on port {port}: {error.strerror}. Stop the process that uses it, or remove --port: "
                "a free one is found."
            ) from None


def pinned(*cores: int) -> None:
    """Runs in the child before exec: its core (or cores), many descriptors, and gone when the harness is gone."""
    os.sched_setaffinity(0, cores)
    raise_descriptors()
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    for number in (signal.SIGINT, signal.SIGTERM):  # which this process may be holding back while it forks
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})


def keep_niceness() -> None:
    """Runs in a child with a new session: gives that the niceness of the process.

    Where the kernel shares processors out by session (sched(7), "The autogroup feature"), niceness counts within a
    session only: `nice -n -20 tricorn bench` would not reach its servers.
    """
    with suppress(OSError):  # no such feature, or a smaller number than the process may ask for
        Path("/proc/self/autogroup").write_text(str(os.getpriority(os.PRIO_PROCESS, 0)))


def raise_descriptors() -> int:
    """Raises the limit of open files as far as the system permits, and returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def adopt_orphans() -> None:
    """Descendants that lose their parent become children of this process (prctl(2)), so that all can be found."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_descendants() -> None:
    """Kills every descendant of this process. Only for a program of its own: it makes no difference between them."""
    while pids := proc.descendants(os.getpid()):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap()
        time.sleep(0.005)
    _reap()


def _reap() -> None:
    """Reaps all children that have ended, adopted ones too."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def shortened(line: str) -> str:
    """A line of a log without its time and process, and without a full stop: it stands in a sentence."""
    return re.sub(r"^\[[^]]*\] \[\d+\] \[\w+\] ", "", line).rstrip(".")[:LINE]


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Server:
    """A server and all its descendants: `with Server(command, port) as server: ...`"""

    boot_timeout = BOOT_TIMEOUT

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        environment: Mapping[str, str] | None = None,
        cores: Iterable[int] = (0,),
        directory: str | os.PathLike[str] | None = None,
        path: str = "/",
        without: Iterable[str] = (),
        host: str = "127.0.0.1",
        secure: bool = False,
    ) -> None:
        """`environment` is added to this process's, `without` taken away; `path` is asked for until it is answered.

        `secure`: the server speaks TLS, whatever its certificate is.
        """
        self.command = list(command)
        self.host, self.port, self.secure = host, port, secure
        self.cores = tuple(cores)
        self.directory = directory
        self.path = path
        self.environment = {**os.environ, **(environment or {})}
        for name in without:
            self.environment.pop(name, None)
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the server)

    def __enter__(self) -> Self:
        begun = time.monotonic()
        try:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=self.output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=self._prepare,
            )
        except OSError as error:
            raise DidNotServe(f"cannot be started: {error}") from error
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise
        self.seconds_to_ready = time.monotonic() - begun
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _prepare(self) -> None:
        pinned(*self.cores)
        keep_niceness()

    def pids(self) -> list[int]:
        """Its session, and descendants that have left it."""
        first = self.process.pid
        return sorted({*proc.session_members(first), *proc.descendants(first)})

    def stop(self) -> None:
        # Only the first process is told: arbiters stop their workers. What is left after that is killed.
        if self.process.poll() is None:
            self.process.terminate()
        deadline = time.monotonic() + PATIENCE
        while self.pids() and time.monotonic() < deadline:
            self.process.poll()
            time.sleep(0.02)
        while left := self.pids():
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.poll()
            time.sleep(0.005)
        self.process.wait()
        self.output.close()

    def said(self) -> str:
        """The last line of what the server printed that tells of an error, or the last one that is not blank."""
        lines = [line.strip() for line in self.log().splitlines() if line.strip()]
        return self.complained() or shortened((lines or ["(it said nothing)"])[-1])

    def complained(self) -> str | None:
        """The last line that tells of an error."""
        lines = (line.strip() for line in self.log().splitlines())
        telling = [line for line in lines if "Error" in line or "[ERROR]" in line or "error:" in line.lower()]
        return shortened(telling[-1]) if telling else None

    def log(self) -> str:
        self.output.flush()
        size = os.fstat(self.output.fileno()).st_size
        return os.pread(self.output.fileno(), size, 0).decode("utf-8", "replace")

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + self.boot_timeout
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise DidNotServe(f"left with status {self.process.returncode}: {self.said()}")
            try:
                self.ask("GET", self.path, b"")
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
            else:
                return
        raise DidNotServe(f"no answer within {self.boot_timeout:g} s: {self.said()}")

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        kind = partial(http.client.HTTPSConnection, context=_trusting()) if self.secure else http.client.HTTPConnection
        connection = kind(self.host, self.port, timeout=self.boot_timeout)
        try:
            connection.request(method, path, body=body or None, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
