"""The arbiter's side of a mold."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence

from tricorn.arbiter.molds.requests import MOST_REPLY, NotForked, Reply, decode_reply
from tricorn.arbiter.worker_handle import NO_PID, ProcessHandle, WorkerHandle
from tricorn.record import Record
from tricorn.unpatched import os, select, socket

CREDENTIALS = struct.Struct("iII")
"""struct ucred: pid, uid, gid (unix(7))."""

MOST_REPLIES = 1000
"""Replies that are read in one turn of the loop."""


class Asked(Record):
    """A request that is not sent yet."""

    nr: int
    data: bytes
    descriptors: Sequence[int]
    owned: Sequence[int]
    """Descriptors that only the new worker is to have."""


class MoldHandle(ProcessHandle):
    def __init__(self, nr: int, pid: int, messages: int, requests: socket.socket) -> None:
        super().__init__(nr, pid, messages)
        self.requests = requests
        self.pending: dict[int, WorkerHandle] = {}
        """Workers that it was asked for, and of which no process is known."""
        self.answered: set[int] = set()
        """Numbers of those that it says it has forked."""
        self.is_gone = False
        """Its process has ended. Workers that it has forked may still say that they are there."""
        self._queue: deque[Asked] = deque()
        self._unsent: list[NotForked] = []
        """Requests that could not be sent."""
        self._is_deaf = False
        """No process holds the other end."""

    def ask(self, handle: WorkerHandle, data: bytes, descriptors: Sequence[int], owned: Sequence[int]) -> None:
        """Has it fork a worker, as soon as it takes the request. Owns the descriptors `owned` from here on."""
        self.pending[handle.nr] = handle
        self._queue.append(Asked(handle.nr, data, [each for each in descriptors if each >= 0], owned))
        self.flush()

    def flush(self) -> None:
        """Sends what it takes."""
        while self._queue:
            asked = self._queue[0]
            try:
                if not self._is_deaf:
                    socket.send_fds(self.requests, [asked.data], asked.descriptors)
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                self._is_deaf = True  # its end is told by the reaper
            except OSError as error:  # too long, or too many descriptors are on their way (unix(7))
                self._unsent.append(NotForked(asked.nr, f"it could not be asked: {error.strerror or error}"))
            self._queue.popleft()
            _close(asked.owned)

    def register(self, poll: select.poll) -> None:
        if self.open:
            poll.register(self.messages, select.POLLIN)
        if not self._is_deaf:
            poll.register(self.requests.fileno(), select.POLLIN | (select.POLLOUT if self._queue else 0))
        for handle in self._doubtful():
            poll.register(handle.messages, 0)  # POLLHUP

    def replies(self) -> Iterator[tuple[int, Reply]]:
        """Yields what it, and the workers that it has forked, have said, with the pid of the sender."""
        while self._unsent:
            yield self.pid, self._unsent.pop()
        for _ in range(MOST_REPLIES):
            if self._is_deaf:
                return
            try:
                data, parts, _, _ = self.requests.recvmsg(MOST_REPLY, socket.CMSG_SPACE(CREDENTIALS.size))
            except BlockingIOError:
                return
            except OSError:
                data, parts = b"", []
            if not data:
                self._is_deaf = True
                return
            reply = decode_reply(data)
            for level, kind, content in parts:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and reply is not None:
                    yield CREDENTIALS.unpack(content[: CREDENTIALS.size])[0], reply

    def ended(self) -> set[int]:
        """Numbers of workers that will never say that they are there: no process has the other end of their pipe."""
        poll = select.poll()
        numbers = {}
        for handle in self._doubtful():
            poll.register(handle.messages, 0)
            numbers[handle.messages] = handle.nr
        return {numbers[descriptor] for descriptor, _ in poll.poll(0)} if numbers else set()

    def _doubtful(self) -> list[WorkerHandle]:
        """Pending workers of which the mold will say no more."""
        self.answered.intersection_update(self.pending)
        return [handle for nr, handle in self.pending.items() if self.is_gone or nr in self.answered]

    def end(self) -> None:
        """Its process has ended, and another may get its pid."""
        self.is_gone = True
        self.pid = NO_PID

    def forget(self) -> None:
        """It is gone, or this process is another one."""
        self.close()
        self.requests.close()
        for asked in self._queue:
            _close(asked.owned)
        self._queue.clear()
        for handle in self.pending.values():
            handle.forget()
        self.pending.clear()


def _close(descriptors: Sequence[int]) -> None:
    for each in descriptors:
        if each >= 0:
            os.close(each)
