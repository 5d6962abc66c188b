"""Servers without the cost of an interpreter's start: forked from a process that has imported what an arbiter imports.

    pytest ── argv, cwd, environ, stdout, stderr ──▶ forkserver ── fork ──▶ `python -m tricorn` after its imports
           ◀── pid; later, if asked for: its status ──

The tests start more than a thousand servers, and three quarters of what a start costs is reading modules that are the
same every time. Tests of the start itself ask for a whole one (`Server(fresh=True)`). The program is
`forkserver_main.py`. It runs code of tests (`run`), too, for what a process can do only once.

All processes of a test run share the forkserver of a class, since one takes up to half a second of CPU to start. The
first that needs it binds the name of its socket (unix(7), abstract) and starts it; it ends with its last connection.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent import futures
from pathlib import Path
from select import POLLIN, poll
from socket import AF_UNIX, SOCK_SEQPACKET, send_fds, socket
from typing import IO

from tests.harness.deadline import until

PROGRAM = Path(__file__).with_name("forkserver_main.py")
READ_AT_START = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "LANG", "LC_")
"""Variables that an interpreter reads before it runs any code begin so."""
AT_START = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
PATIENCE = 300
"""Seconds that other processes may test for after this one."""


class Forkserver:
    """Of one worker class, whose modules the arbiter imports before it forks."""

    _of: dict[str, Forkserver] = {}  # noqa: RUF012  (one for each, for as long as this process lives)

    def __init__(self, alias: str) -> None:
        self._socket = socket(AF_UNIX, SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        """The forkserver, if this process has started it."""
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
        name = f"\0tricorn-forkserver-{run}-{alias}"
        with socket(AF_UNIX, SOCK_SEQPACKET) as listener:
            try:
                listener.bind(name)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                until(lambda: self._socket.connect_ex(name) == 0, f"the forkserver of {alias} listens")
            else:
                listener.listen(64)
                self._socket.connect(name)
                self._process = subprocess.Popen(
                    [sys.executable, PROGRAM, str(listener.fileno()), alias],
                    pass_fds=[listener.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env=AT_START,
                )
        atexit.register(self.stop)

    @classmethod
    def of(cls, alias: str) -> Forkserver:
        if alias not in cls._of:
            cls._of[alias] = cls(alias)
        return cls._of[alias]

    @staticmethod
    def can_start(environ: Mapping[str, str]) -> bool:
        """Whether an interpreter that is started with this environment does nothing else than ours did at its start."""

        def early(variables: Mapping[str, str]) -> dict[str, str]:
            return {name: value for name, value in variables.items() if name.startswith(READ_AT_START)}

        return early(environ) == early(AT_START)

    def start(self, argv: Sequence[str], cwd: str, environ: Mapping[str, str], code: str | None = None) -> Forked:
        """`python -m tricorn` with these arguments, or `python -c code`, as the leader of a session."""
        order = {"argv": list(argv), "cwd": cwd, "environ": dict(environ), "code": code}
        (out, their_out), (err, their_err) = os.pipe(), os.pipe()
        with self._lock:
            send_fds(self._socket, [json.dumps(order).encode()], [their_out, their_err])
            os.close(their_out)
            os.close(their_err)
            pid = int(self._answer())
        return Forked(self, argv, pid, os.fdopen(out, "rb"), os.fdopen(err, "rb"))

    def run(
        self, code: str | None, *arguments: str, cwd: str, environ: Mapping[str, str], within: float
    ) -> subprocess.CompletedProcess[str]:
        """`subprocess.run` of `python -c`, or without code of `python -m tricorn`; an arbiter's modules are there."""
        forked = self.start(arguments, cwd, environ, code)
        with forked.stdout, forked.stderr, futures.ThreadPoolExecutor(2) as threads:
            texts = [threads.submit(stream.read) for stream in (forked.stdout, forked.stderr)]
            try:
                for text in texts:
                    text.result(within)
                forked.wait(within)
            except (futures.TimeoutError, subprocess.TimeoutExpired):
                os.killpg(forked.pid, signal.SIGKILL)
                forked.wait(within)
                raise subprocess.TimeoutExpired(code or arguments, within) from None
            out, err = (text.result().decode() for text in texts)
        return subprocess.CompletedProcess(forked.args, forked.wait(), out, err)

    def status_of(self, pid: int) -> int:
        """The wait status of one that has ended. To be asked once."""
        with self._lock:
            self._socket.send(json.dumps({"ended": pid}).encode())
            return int(self._answer())

    def _answer(self) -> bytes:
        answer = self._socket.recv(100)
        assert answer, "the forkserver has ended"
        return answer

    def stop(self) -> None:
        """Waits for the end of what it has started, which is that of the last process that uses it."""
        self._socket.close()
        if self._process is not None:
            self._process.wait(PATIENCE)


class Forked:
    """A process of a forkserver, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, parent: Forkserver, args: Sequence[str], pid: int, out: IO[bytes], err: IO[bytes]) -> None:
        self.args = args
        self.pid = pid
        self.stdout = out
        self.stderr = err
        self.returncode: int | None = None
        self._parent = parent
        self._pidfd = os.pidfd_open(pid)
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._ended_within(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return status

    def _ended_within(self, seconds: float | None) -> int | None:
        with self._lock:
            if self.returncode is None:
                ends = poll()
                ends.register(self._pidfd, POLLIN)
                if ends.poll(None if seconds is None else 1000 * seconds):
                    self.returncode = os.waitstatus_to_exitcode(self._parent.status_of(self.pid))
                    os.close(self._pidfd)
            return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
