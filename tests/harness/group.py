"""Cores in processes of their own that share a listener, the channel and the pages, as the workers of an arbiter do.

Without an arbiter: a member that dies stays dead until a test starts another, and only the cores move requests.
"""

from __future__ import annotations

import collections
import fcntl
import hashlib
import json
import mmap
import os
import signal
import socket
import struct
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from tricorn._core import Core, WsgiGateway, scoreboard_bytes
from tricorn.arbiter.channel import Channel, open_channel
from tricorn.metrics.scoreboard import GROUP_BYTES, Scoreboard, Snapshot

from tests.harness import proc
from tests.harness.core import BASE_ENVIRON, OPTIONS
from tests.harness.deadline import until
from tests.harness.marked import ran
from tests.harness.transports import CLEAR, Transport
from tests.harness.wire import Address, Wire, request

if TYPE_CHECKING:
    from typing_extensions import Self

MOST = 16
"""Members at a time."""
GATES = 4096


class Member:
    """One process with a core."""

    def __init__(self, pid: int, page: int) -> None:
        self.pid = pid
        self.page = page
        self.status: int | None = None

    def has_ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def wait_killed(self) -> None:
        until(self.has_ended, f"process {self.pid} ends")
        assert self.status == -signal.SIGKILL, self.status

    def descriptors(self) -> int:
        return proc.descriptors(self.pid)


@dataclass
class Filled:
    """Requests that keep a member busy."""

    group: Group
    held: list[tuple[Wire, int]]

    def release(self) -> None:
        for wire, gate in self.held:
            self.group.open_gate(gate)
            assert wire.reply().status == 200


class Group:
    """`start` makes a member. Leaving the block drains all that live, and complains of what does not end well.

    The application writes a line for each call it gets (`served`), waits at a gate if it is told to (`?gate=N`, until
    `open_gate(N)`) or for `?s=` seconds, and answers with JSON.
    """

    def __init__(self, directory: Path, *, threads: int = 1, transport: Transport = CLEAR, **options: Any) -> None:
        self.threads = threads
        self.transport = transport
        self.options = transport.core | options
        self.members: list[Member] = []
        self._wires: list[Wire] = []
        self._last_gate = 100
        self.ledger = directory / "served"
        self.ledger.touch()
        self.errors = directory / "errors"
        self.errors.touch()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.listener.setblocking(False)
        self.address: Address = self.listener.getsockname()
        self.size = scoreboard_bytes(threads)
        self.pages = mmap.mmap(-1, self.size * MOST)
        self.group = mmap.mmap(-1, GROUP_BYTES)
        self.gates = mmap.mmap(-1, GATES)
        channel = open_channel()
        assert channel is not None
        self.channel: Channel = channel

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.gates[:] = b"\1" * GATES
        for wire in self._wires:
            wire.close()
        complaints = []
        try:
            for member in self.members:
                if not member.has_ended():
                    os.kill(member.pid, signal.SIGTERM)
            for member in self.members:
                try:
                    until(member.has_ended, "it ends")
                except AssertionError:
                    complaints.append(f"process {member.pid} does not drain")
                    os.kill(member.pid, signal.SIGKILL)
                    os.waitpid(member.pid, 0)
                if member.status not in (None, 0, -signal.SIGKILL):
                    complaints.append(f"process {member.pid} ended with {member.status}")
        finally:
            self.listener.close()
            self.channel.close()
        if kind is None:
            assert not complaints, f"{complaints}; {self.errors.read_text()}"
            assert self.errors.read_text() == ""

    def start(self, **options: Any) -> Member:
        """Another member, once it serves. It gets a page that no living one has."""
        taken = {member.page for member in self.members if not member.has_ended()}
        page = next(number for number in range(MOST) if number not in taken)
        self.board(page)[:] = bytes(self.size)
        pid = os.fork()
        if pid == 0:
            self._live(page, self.options | options)
        member = Member(pid, page)
        self.members.append(member)
        until(lambda: self._serves(member), "the member serves")
        return member

    def _serves(self, member: Member) -> bool:
        seen = self.snapshot(member)
        threads = seen.figures["free"] + seen.figures["in_flight"] + seen.figures["requests"]
        return seen.pid == member.pid and seen.state == "serving" and threads > 0

    def bury(self, member: Member) -> None:
        """What an arbiter does when it learns that a worker has died."""
        Scoreboard(self.board(member.page)).vacate()

    def kill(self, member: Member) -> None:
        os.kill(member.pid, signal.SIGKILL)
        member.wait_killed()

    def wire(self, **options: Any) -> Wire:
        """A connection, which is closed with the group at the latest."""
        self._wires.append(self.transport.connect(self.address, **options))
        return self._wires[-1]

    def fill(self, member: Member, wires: list[Wire]) -> Filled:
        """Makes every thread of a member busy; takes as many of its connections as that needs from the list.

        One a thread is not always enough: a request that its worker is slow to begin goes to another that is idle.
        """
        held: list[tuple[Wire, int]] = []
        while len(held) < self.threads:
            self._last_gate += 1
            wire, gate, id_ = wires.pop(), self._last_gate, f"fill{self._last_gate}"
            wire.send(request("GET", f"/?id={id_}&gate={gate}"))
            if until(partial(ran, self.ledger, id_), "it is in the application") == member.pid:
                held.append((wire, gate))
            else:
                Filled(self, [(wire, gate)]).release()
        return Filled(self, held)

    def open_gate(self, number: int) -> None:
        self.gates[number] = 1

    # What can be seen from outside.

    def board(self, page: int) -> memoryview:
        return memoryview(self.pages)[page * self.size : (page + 1) * self.size]

    def snapshot(self, member: Member) -> Snapshot:
        return until(lambda: Scoreboard(self.board(member.page)).read(), "the member has begun its page")

    def figure(self, member: Member, name: str) -> int:
        return self.snapshot(member).figures[name]

    def served(self) -> collections.Counter[str]:
        """How often the application was called for each id."""
        return collections.Counter(line.split()[0] for line in self.ledger.read_text().splitlines())

    def waiting(self) -> int:
        """Bytes of messages in the channel."""
        (count,) = struct.unpack("i", fcntl.ioctl(self.channel.receiver, termios.FIONREAD, b"\0" * 4))
        return int(count)

    def counts(self) -> tuple[int, int]:
        """How many messages were ever sent and taken."""
        sent, taken = struct.unpack_from("2Q", self.group)
        return sent, taken

    # The inside of a member.

    def _live(self, page: int, options: dict[str, Any]) -> None:
        status = 70
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            self._close_others()
            self._serve(page, options)
            status = 0
        except BaseException:
            self._complain(traceback.format_exc())
        finally:
            os._exit(status)

    def _close_others(self) -> None:
        """The clients' ends of connections above all: they would outlive the client's closing of them."""
        kept = {0, 1, 2, self.listener.fileno(), self.channel.bell}
        kept |= {self.channel.receiver.fileno(), self.channel.sender.fileno()}
        for number in map(int, os.listdir("/proc/self/fd")):
            if number not in kept:
                with suppress(OSError):  # the listing's own is closed by now
                    os.close(number)

    def _serve(self, page: int, options: dict[str, Any]) -> None:
        given = OPTIONS | {
            "threads": self.threads,
            "pid": os.getpid(),
            "siblings": True,
            "pages": memoryview(self.pages),
            "group": memoryview(self.group),
            "channel": self.channel.hand_over(),
        }
        core = Core([self.listener.detach()], given | options, self.board(page))
        gateway = WsgiGateway(
            self._application,
            BASE_ENVIRON | {"wsgi.errors": sys.stderr, "wsgi.multithread": self.threads > 1},
            lambda message, error: self._complain(f"{message}: {error!r}\n"),
            lambda _, text: None,
            None,
            None,
        )
        core.start()
        signal.set_wakeup_fd(core.wakeup_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: core.drain())
        if self.threads == 1:
            core.serve(gateway)
        else:
            threads = [threading.Thread(target=core.serve, args=(gateway,)) for _ in range(self.threads)]
            for thread in threads:
                thread.start()
            core.wait()
            for thread in threads:
                thread.join()
        signal.set_wakeup_fd(-1)
        core.close()

    def _complain(self, text: str) -> None:
        with self.errors.open("a") as stream:
            stream.write(text)

    def _application(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        given = dict(parse_qsl(environ["QUERY_STRING"]))
        with self.ledger.open("ab", buffering=0) as stream:
            stream.write(f"{given.get('id', '-')} {os.getpid()}\n".encode())
        body = environ["wsgi.input"].read()
        if "gate" in given:
            end = time.monotonic() + 60
            while not self.gates[int(given["gate"])] and time.monotonic() < end:
                time.sleep(0.002)
        time.sleep(float(given.get("s", "0")))
        answer = {
            "pid": os.getpid(),
            "id": given.get("id"),
            "length": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "queue_time": environ.get("tricorn.queue_time"),
            "remote": environ.get("REMOTE_ADDR"),
            "port": environ.get("REMOTE_PORT"),
        }
        text = json.dumps(answer).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
        return [text]
