"""A log whose reader has stopped reading: the arbiter does not wait for it."""

from __future__ import annotations

import os
import pty
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.harness import proc, until
from tests.harness.server import APPS, OWN_COMMAND, free_port
from tests.harness.wire import Wire

pytestmark = pytest.mark.beyond_reference("its arbiter blocks in write(2)")


class Log:
    """Where the server's stderr leads; it is read when the test says so."""

    def __init__(self, kind: str, stack: ExitStack) -> None:
        if kind == "socket":
            ours, theirs = socket.socketpair()
            self.reader, self.writer = ours.detach(), theirs.detach()
        else:
            self.reader, self.writer = pty.openpty() if kind == "terminal" else os.pipe()
        stack.callback(os.close, self.reader)
        stack.callback(os.close, self.writer)
        os.set_blocking(self.reader, False)
        self._kind = kind
        self.text = ""

    def read(self) -> str:
        with suppress(BlockingIOError, OSError):
            while data := os.read(self.reader, 1 << 16):
                self.text += data.decode("utf-8", "replace")
        return self.text

    def fill(self) -> None:
        """Until it takes not even a byte. A terminal carries bytes on a little later, and then takes more."""
        poll = select.poll()
        poll.register(self.writer, select.POLLOUT)
        with self._not_waiting() as write:
            while poll.poll(100):
                for size in (4096, 1):
                    with suppress(BlockingIOError):
                        while write(b"x" * size):
                            pass

    @contextmanager
    def _not_waiting(self) -> Iterator[Callable[[bytes], int]]:
        if self._kind == "socket":
            with socket.socket(fileno=os.dup(self.writer)) as sock:
                yield lambda data: sock.send(data, socket.MSG_DONTWAIT)
            return
        own = os.open(f"/proc/self/fd/{self.writer}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            yield lambda data: os.write(own, data)
        finally:
            os.close(own)


@contextmanager
def running(log: Log, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    port = free_port()
    command = [*OWN_COMMAND, "-b", f"127.0.0.1:{port}", "-k", "sync", "--graceful-timeout", "1", *options]
    with subprocess.Popen([*command, "gallery:application"], cwd=APPS, stdout=log.writer, stderr=log.writer) as process:
        try:

            def serves() -> bool:
                with suppress(OSError), Wire(("127.0.0.1", port), timeout=1) as wire:
                    return wire.get("/").status == 200
                return False

            until(serves, "it serves")
            log.read()
            yield process
        finally:
            children = proc.children(process.pid) if process.poll() is None else []
            for pid in (process.pid, *children) if process.poll() is None else ():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("kind", ["pipe", "socket", "terminal"])
def test_an_arbiter_whose_log_is_full_reaps_and_leaves(kind: str) -> None:
    with ExitStack() as stack:
        log = Log(kind, stack)
        with running(log) as process:
            (worker,) = proc.children(process.pid)
            log.fill()
            os.kill(worker, signal.SIGKILL)
            until(lambda: proc.children(process.pid) not in ([], [worker]), "it is reaped, and another one started")
            log.read()
            os.kill(process.pid, signal.SIGTTIN)
            until(lambda: "Handling signal: ttin" in log.read(), "it writes again")
            assert "line(s) of this log were lost: its reader takes nothing" in log.text
            log.fill()
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(60) == 0


def test_what_hooks_print_does_not_stop_an_arbiter(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text("def child_exit(server, worker):\n    print('gone' * 5000, flush=True)\n")
    with ExitStack() as stack:
        log = Log("pipe", stack)
        with running(log, "-c", str(tmp_path / "conf.py")) as process:
            (worker,) = proc.children(process.pid)
            log.fill()
            os.kill(worker, signal.SIGKILL)
            until(lambda: not os.path.exists(f"/proc/{worker}"), "the worker is reaped")
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(60) == 0


def test_a_fifo_without_a_reader_stops_no_arbiter(tmp_path: Path) -> None:
    """At a reload: the log of before stays in use."""
    fifo, conf = tmp_path / "fifo", tmp_path / "conf.py"
    os.mkfifo(fifo)
    conf.write_text("")
    with ExitStack() as stack:
        log = Log("pipe", stack)
        with running(log, "-c", str(conf)) as process:
            conf.write_text(f"errorlog = {str(fifo)!r}\n")
            os.kill(process.pid, signal.SIGHUP)
            until(lambda: "cannot be written: No such device or address" in log.read(), "the reload is refused")
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(60) == 0
