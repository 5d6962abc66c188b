"""Messages between the arbiter, a mold and the workers that it forks: one message each (SOCK_SEQPACKET)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tricorn.arbiter.hiring import Position
from tricorn.descriptors import receive
from tricorn.record import Record
from tricorn.unpatched import os, socket

SIZE = 1 << 20
"""Bytes of a request, at most: what the hook `pre_fork` has put on the worker is in it."""

DESCRIPTORS = 4

MOST_AT_ONCE = 200
"""Descriptors that are sent in one message; the kernel's limit is 253 (SCM_MAX_FD)."""

MOST_REPLY = 512


class Request(Record):
    """Fork a worker."""

    position: Position
    attributes: Mapping[str, bytes]
    """Attributes that the hook `pre_fork` has set on the worker, each pickled."""
    has_reports: bool
    """The file of the worker's reports comes with it."""
    has_bell: bool
    """The reading end of its bell comes with it."""
    has_requests: bool
    """The socket at which it gets requests once it is a mold (`refork`) comes with it."""

    @property
    def descriptors(self) -> int:
        """How many come with it; the first is the worker's pipe."""
        return 1 + self.has_reports + self.has_bell + self.has_requests

    def apply(self, worker: object) -> None:
        """Sets the attributes. Raises whatever they raise."""
        import pickle

        for name, value in self.attributes.items():
            setattr(worker, name, pickle.loads(value))


class HasForked(Record):
    """The mold has forked the worker."""

    nr: int


class NotForked(Record):
    """The mold could not."""

    nr: int
    reason: str


class Here(Record):
    """The new worker itself. Its sender is its pid."""

    nr: int


Reply = HasForked | NotForked | Here


def open_requests() -> tuple[socket.socket, socket.socket]:
    """The arbiter's end, which does not wait and gets the pid of each sender, and the mold's."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return ours, its


def pickled(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[dict[str, bytes], list[str]]:
    """The attributes that are new or others since `before`, and the names of those that cannot be sent."""
    import pickle

    attributes, lost = {}, []
    for name, value in after.items():
        if name in before and before[name] is value:
            continue
        try:
            attributes[name] = pickle.dumps(value)
        except Exception:  # pickle raises whatever the classes of values raise
            lost.append(name)
    return attributes, lost


def encode_request(request: Request) -> bytes:
    import pickle

    values = vars(request)
    return pickle.dumps({**values, "position": tuple(vars(request.position).values())})


def decode_request(data: bytes) -> Request:
    """Reads a request. Called in a mold, which trusts the arbiter."""
    import pickle

    values = pickle.loads(data)
    return Request(**{**values, "position": Position(*values["position"])})


def send_promotion(requests: socket.socket, descriptors: Sequence[int]) -> None:
    """Tells a worker to become a mold when it has drained, and sends what it needs for that. Raises OSError."""
    parts = [descriptors[start : start + MOST_AT_ONCE] for start in range(0, len(descriptors), MOST_AT_ONCE)]
    for number, part in enumerate(parts, start=1):
        socket.send_fds(requests, [b"promoted %d %d" % (number, len(parts))], part)


def receive_promotion(requests: socket.socket) -> list[int] | None:
    """The descriptors, which the caller then owns; None: it was not told to become a mold, or not all has come."""
    descriptors: list[int] = []
    is_whole = False
    while not is_whole:
        try:
            data, received = receive(requests, MOST_REPLY, MOST_AT_ONCE, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT)
        except OSError:
            break
        descriptors += received
        match data.split():
            case [b"promoted", number, count] if received:
                is_whole = number == count
            case _:
                break
    if is_whole:
        return descriptors
    for each in descriptors:
        os.close(each)
    return None


def encode_reply(reply: Reply) -> bytes:
    match reply:
        case HasForked(nr):
            return b"forked %d" % nr
        case Here(nr):
            return b"here %d" % nr
        case NotForked(nr, reason):
            return b"failed %d %s" % (nr, reason.encode("utf-8", "replace")[:256])


def decode_reply(data: bytes) -> Reply | None:
    """Reads a reply. None for what no mold and no worker says."""
    word, _, rest = data.partition(b" ")
    number, _, text = rest.partition(b" ")
    if not (number.isdigit() and len(number) <= 18):
        return None
    nr = int(number)
    match word:
        case b"forked":
            return HasForked(nr)
        case b"here":
            return Here(nr)
        case b"failed":
            return NotForked(nr, text.decode("utf-8", "replace"))
    return None
