"""Ctrl-C at a terminal, when `breakpoint()` was met in a view."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.harness.deadline import PATIENCE, until
from tests.harness.server import command, free_port
from tests.harness.wire import Wire, request

VIEW = """\
def application(environ, start_response):
    breakpoint()
    start_response("200 OK", [("Content-Length", "3")])
    return [b"ok\\n"]
"""

CTRL_C = b"\x03"


class Terminal:
    """A server at the foreground of a terminal, and who types there."""

    def __init__(self, directory: Path, worker_class: str) -> None:
        self.address = "127.0.0.1", free_port()
        self._keys, screen = pty.openpty()
        words = ["-k", worker_class, "-b", "{}:{}".format(*self.address), "--timeout", "0", "view:application"]
        self.process = subprocess.Popen(
            [*command(), *words],
            cwd=directory,
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(screen)
        self._shown = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # EIO: no process has the terminal any more
            while shown := os.read(self._keys, 65536):
                self._shown += shown

    @property
    def text(self) -> str:
        return self._shown.decode(errors="replace")

    def shows(self, text: str) -> None:
        until(lambda: text in self.text, f"{text!r} on the terminal")

    def types(self, keys: bytes) -> None:
        os.write(self._keys, keys)

    def wait_exit(self) -> int:
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._reader.join()
        os.close(self._keys)


@contextmanager
def at_a_terminal(directory: Path, worker_class: str) -> Iterator[Terminal]:
    (directory / "view.py").write_text(VIEW)
    terminal = Terminal(directory, worker_class)
    try:
        terminal.shows("Ready")
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize("worker_class", ["sync", "gthread", "gevent"])
def test_the_server_ends_when_the_view_has_gone_on(worker_class: str, tmp_path: Path) -> None:
    """pdb's own handler of SIGINT traces what is called next, which is the server's handler."""
    with at_a_terminal(tmp_path, worker_class) as terminal, Wire(terminal.address) as wire:
        wire.send(request("GET", "/"))
        terminal.shows("(Pdb)")
        terminal.types(b"c\n")
        assert wire.reply().status == 200
        terminal.types(CTRL_C)
        assert terminal.wait_exit() == 0
        assert "SIGKILL" not in terminal.text, terminal.text


@pytest.mark.parametrize("worker_class", ["sync", "gevent"])
def test_the_server_ends_at_the_prompt(worker_class: str, tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, worker_class) as terminal, Wire(terminal.address) as wire:
        wire.send(request("GET", "/"))
        terminal.shows("(Pdb)")
        terminal.types(CTRL_C)
        assert terminal.wait_exit() == 0
        assert "SIGKILL" not in terminal.text, terminal.text
