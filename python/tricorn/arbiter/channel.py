"""Shared by all workers: the channel in which connections go from one to another, and a page they all write.

    sender ──▶ messages of the workers' cores, each with the connection it is about (SCM_RIGHTS) ──▶ receiver
    bell       an eventfd that wakes workers which wait until the channel can take more
    mailboxes  a channel for each worker alone, in which requests of its sessions come, and the table of those

Made once and forked to the workers of every generation, so that a worker that leaves can pass on what waits in it. The
arbiter reads no message while there are workers: what one that was killed has sent is taken by the others.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

from tricorn import _core, descriptors
from tricorn.metrics.scoreboard import GROUP_BYTES, LEDGER_BYTES
from tricorn.shared_memory import Memory
from tricorn.unpatched import os, socket

SEND_BUFFER = 4 << 20
"""Asked for; the system cuts it to net.core.wmem_max."""

MOST_DESCRIPTORS = 16
"""Descriptors in one message: the client's connection, and then what is kept on disk of the request."""

FLAGS = getattr(socket, "MSG_CMSG_CLOEXEC", 0) | socket.MSG_DONTWAIT

UNREAD = 1 << 16

LEAST_MAILBOXES = 8

HEADER = 256
"""Bytes of a message that tell how its client is answered; the rest of it is not read."""


Pair: TypeAlias = "tuple[socket.socket, socket.socket]"
"""The end that receives, and the one that sends."""


class Channel:
    """The two ends of the channel, and the bell."""

    def __init__(self, receiver: socket.socket, sender: socket.socket, bell: int) -> None:
        self.receiver, self.sender, self.bell = receiver, sender, bell

    def hand_over(self) -> tuple[int, int, int]:
        """Returns the descriptors, which the caller then owns. Called in a worker."""
        bell, self.bell = self.bell, -1
        return self.receiver.detach(), self.sender.detach(), bell

    def descriptors(self) -> list[int]:
        return [self.receiver.fileno(), self.sender.fileno(), self.bell]

    def take_back(self, descriptors: Iterator[int]) -> None:
        """Gets the same again, after `hand_over` or `close`."""
        self.receiver, self.sender = (socket.socket(fileno=next(descriptors)) for _ in range(2))
        self.bell = next(descriptors)

    def close(self) -> None:
        self.receiver.close()
        self.sender.close()
        if self.bell >= 0:
            os.close(self.bell)
            self.bell = -1

    def turn_away(self) -> int:
        """Answers 503 to all that is in the channel and that no worker will take; how many requests that were."""
        return _turn_away_all(self.receiver)


class Mailboxes:
    """One channel for each worker's slot, for requests of the sessions that this worker has; and the table of those."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = pairs
        size, _ = _core.session_sizes()
        self.memory = Memory("tricorn-sessions", size)
        self.sessions = _core.Sessions(self.memory.view)
        keys = os.urandom(16)
        self.sessions.begin(int.from_bytes(keys[:8], "big"), int.from_bytes(keys[8:], "big"))

    def hand_over(self, slot: int) -> tuple[int, int, list[int]] | None:
        """Returns the receiving end of a slot's mailbox, its number, and the sending ends of all.

        Called in a worker, which then owns the descriptors. The others are closed. Returns None for a slot without one.
        """
        own = slot - 1
        if own >= len(self._pairs):
            self.close()
            return None
        for number, (receiver, _) in enumerate(self._pairs):
            if number != own:
                receiver.close()
        return self._pairs[own][0].detach(), own, [sender.detach() for _, sender in self._pairs]

    def descriptors(self) -> list[int]:
        return [end.fileno() for pair in self._pairs for end in pair]

    def take_back(self, descriptors: Iterator[int]) -> None:
        """Gets the same again, after `hand_over` or `close`."""
        ends = [socket.socket(fileno=next(descriptors)) for pair in self._pairs for _ in pair]
        self._pairs = list(zip(ends[::2], ends[1::2], strict=True))

    def bury(self, slot: int) -> int:
        """Forgets the sessions of a worker that is gone; returns how many requests were answered 503 for it."""
        if slot > len(self._pairs):
            return 0
        self.sessions.disown(slot - 1)
        return _turn_away_all(self._pairs[slot - 1][0])

    def turn_away(self, slots: Container[int]) -> int:
        """Answers 503 to what came for workers that are gone: for all but those of these slots."""
        return sum(
            _turn_away_all(receiver) for number, (receiver, _) in enumerate(self._pairs) if number + 1 not in slots
        )

    def close(self) -> None:
        _close(self._pairs)


class SharedChannel:
    """Memory and channel that the arbiter creates once, for its whole life."""

    def __init__(self, channel: Channel | None, mailboxes: Mailboxes | None = None) -> None:
        self.channel = channel
        """None where the system has no such sockets: every request is served by the worker that has its connection."""
        self.mailboxes = mailboxes
        """None where sessions do not stay with their workers."""
        self.group_memory = Memory("tricorn-group", GROUP_BYTES)
        self.ledger_memory = Memory("tricorn-ledger", LEDGER_BYTES)

    @property
    def group(self) -> memoryview:
        return self.group_memory.view

    @property
    def ledger(self) -> memoryview:
        """Counts of workers that are gone. The arbiter writes them."""
        return self.ledger_memory.view

    def release(self) -> None:
        """Closes the descriptors of the memory, which stays mapped. Called in a worker."""
        self.group_memory.release()
        self.ledger_memory.release()
        if self.mailboxes is not None:
            self.mailboxes.memory.release()


def open_channel() -> Channel | None:
    """Returns None where this is not possible, which is everywhere but on Linux."""
    pairs = _pairs(1)
    if not pairs:
        return None
    ((receiver, sender),) = pairs
    try:
        return Channel(receiver, sender, os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))
    except OSError:
        _close(pairs)
        return None


def open_mailboxes(workers: int) -> Mailboxes | None:
    """Returns None where this is not possible. Makes some for workers that come later, or are still leaving."""
    _, most = _core.session_sizes()
    pairs = _pairs(min(max(2 * workers, LEAST_MAILBOXES), most))
    if not pairs:
        return None
    try:
        return Mailboxes(pairs)
    except OSError:
        _close(pairs)
        return None


def _pairs(count: int) -> list[Pair]:
    """Makes receiving and sending ends for messages. Returns none where the system has no such sockets."""
    pairs: list[Pair] = []
    if not (hasattr(os, "eventfd") and hasattr(socket, "SOCK_SEQPACKET")):
        return pairs
    try:
        for _ in range(count):
            receiver, sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            pairs.append((receiver, sender))
            receiver.setblocking(False)
            sender.setblocking(False)
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    except OSError:
        _close(pairs)
        return []
    return pairs


def _close(pairs: Iterable[Pair]) -> None:
    for pair in pairs:
        for end in pair:
            end.close()


def _turn_away_all(receiver: socket.socket) -> int:
    count = 0
    while True:
        try:
            # What else is in a message, only the cores understand. Workers share the socket and may have made it
            # blocking, so that the call itself has to say otherwise.
            some, received = descriptors.receive(receiver, HEADER, MOST_DESCRIPTORS, FLAGS)
        except BlockingIOError:
            return count
        if received:
            _turn_away(received, _core.unavailable(some))
            count += 1
        elif not some:
            return count


def _turn_away(received: list[int], answer: bytes) -> None:
    """Answers and closes the connection of a message, and closes what else came with it."""
    client, *others = received
    for each in others:
        os.close(each)
    try:
        connection = socket.socket(fileno=client)
    except OSError:
        os.close(client)
        return
    with connection, suppress(OSError):  # a client that has left needs no answer
        # A worker may share this one, too. The answer is short: it fits into an empty send buffer.
        connection.send(answer, socket.MSG_DONTWAIT)
        connection.shutdown(socket.SHUT_WR)
        # Closed with something unread, it would be reset, and the answer lost on its way.
        connection.recv(UNREAD, socket.MSG_DONTWAIT)
