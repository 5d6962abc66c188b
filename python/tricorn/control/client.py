"""Client of the control socket of a running server.

with Control.connect(find(None, None), timeout=5) as control:
    control.ask("status")
    pages = control.pages()
"""

from __future__ import annotations

import json
import mmap
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tricorn import descriptors
from tricorn.control import socket_path
from tricorn.record import Record
from tricorn.unpatched import os, socket, time

VARIABLE = "TRICORN_CONTROL_SOCKET"

PIECE = 64 << 10
MOST_ANSWER = 8 << 20
"""Bytes of a line that is waited for."""
MOST_DESCRIPTORS = 8

PROBE = 0.5
"""Seconds to find out whether a server listens on a socket."""
MOMENT = 0.05
"""Seconds after which a refusal is asked again: a server that begins has the name of its socket before it listens."""


class ControlError(Exception):
    """Error of a request that was not carried out. The message is a sentence."""


class NoServer(ControlError):
    """No server was found, or several."""


class NoAnswer(ControlError):
    """The server did not answer in time, or closed the connection."""


class TooLate(NoAnswer):
    """The server did not answer in time, but may still do so: the connection is open."""


class Refused(ControlError):
    """The server rejected the request."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind
        """`denied`, `refused`, `unknown`, `busy` or `failed`."""


class Row(Record):
    """A worker and the number of its page."""

    slot: int
    pid: int
    nr: int
    generation: int
    state: str
    page: int | None
    """None: its page is in an older memory region, which is not shared."""


class Pages:
    """The sealed pages of a server, with the counters of its workers as they change.

    The mappings are private (copy-on-write): the core's readers want writable memory, and what one writes is seen
    by no other process. What the server writes is seen at once.
    """

    def __init__(self, answer: Mapping[str, Any], descriptors: list[int]) -> None:
        """Takes the descriptors over."""
        try:
            region, group, ledger = descriptors
            self.layout: int = answer["layout"]
            self.size: int = answer["size"]
            """Bytes of a worker's page."""
            self.count: int = answer["count"]
            self.region = _mapped(region, self.size * self.count)
            """All pages, one after another."""
            self.group = _mapped(group, answer["group_bytes"])
            self.ledger = _mapped(ledger, answer["ledger_bytes"])
            self.workers = [Row(**row) for row in answer["workers"]]
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise ControlError(f"Could not parse the server's answer: {error}.") from None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def page(self, number: int) -> memoryview:
        return memoryview(self.region)[number * self.size : (number + 1) * self.size]


def _connected(path: str, timeout: float) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout or None)
        sock.connect(path)
    except BaseException:
        sock.close()
        raise
    return sock


class Control:
    """A connection to a server, for one thread and one request at a time."""

    def __init__(self, path: str | os.PathLike[str], timeout: float = 5.0) -> None:
        """Connects. Raises NoServer."""
        self.path = os.fspath(path)
        self.timeout = timeout
        """Timeout of an answer in seconds; 0: none."""
        self._buffer = bytearray()
        self._descriptors: list[int] = []
        self._last = 0
        try:
            try:
                self._socket = _connected(self.path, timeout)
            except ConnectionRefusedError:
                time.sleep(MOMENT)
                self._socket = _connected(self.path, timeout)
        except OSError as error:
            raise NoServer(f"Could not connect to a server at {self.path}: {error.strerror or error}.") from None

    @classmethod
    def connect(cls, path: str | os.PathLike[str], timeout: float = 5.0) -> Control:
        """Raises NoServer."""
        return cls(path, timeout)

    def __enter__(self) -> Control:  # noqa: PYI034  (Self is of Python 3.11)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fileno(self) -> int:
        """Returns the descriptor for select(2). It is readable when there is something for `events`."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()

    def ask(self, word: str, **arguments: object) -> dict[str, Any]:
        """Sends a request and returns the result. Raises Refused and NoAnswer."""
        number = self._send(word, arguments)
        until = time.monotonic() + self.timeout if self.timeout else None
        while True:
            answer = self._receive(until)
            if answer.get("id") not in (number, None) or "event" in answer:
                continue
            if answer.get("ok") is True:
                result = answer.get("result")
                return result if isinstance(result, dict) else {}
            raise Refused(str(answer.get("kind", "refused")), str(answer.get("error", "no reason given")))

    def events(self) -> Iterator[dict[str, Any]]:
        """Yields the server's events from now on, until it ends. Raises Refused."""
        self.ask("events")
        while True:
            try:
                line = self._receive(None)
            except NoAnswer:
                return
            if "event" in line:
                yield line

    def pages(self) -> Pages:
        """Returns the pages of the workers. Raises Refused if the server's system cannot seal them."""
        answer = self.ask("pages")
        descriptors, self._descriptors = self._descriptors, []
        return Pages(answer, descriptors)

    def _send(self, word: str, arguments: Mapping[str, object]) -> int:
        self._last += 1
        line = json.dumps({"id": self._last, "do": word, **arguments}).encode() + b"\n"
        try:
            self._socket.sendall(line)
        except OSError as error:
            # What it said before it closed the connection tells why.
            if self._has_line():
                return self._last
            raise NoAnswer(f"The server at {self.path} has closed the connection: {error.strerror or error}.") from None
        return self._last

    def _has_line(self) -> bool:
        try:
            self._buffer += self._socket.recv(PIECE)
        except OSError:
            pass
        return b"\n" in self._buffer

    def _receive(self, until: float | None) -> dict[str, Any]:
        """The next line."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > MOST_ANSWER:
                raise ControlError(f"The server's answer is longer than {MOST_ANSWER} bytes.")
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise self._no_answer()
            self._socket.settimeout(left)
            try:
                data, received = descriptors.receive(self._socket, PIECE, MOST_DESCRIPTORS, _CLOSE_ON_EXEC)
            except TimeoutError:
                raise self._no_answer() from None
            except OSError as error:
                raise NoAnswer(f"Lost the connection to {self.path}: {error.strerror or error}.") from None
            self._descriptors += received
            if not data:
                raise NoAnswer(f"The server at {self.path} has closed the connection.")
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ControlError(f"{self.path} is not a control socket of tricorn.")
        return found

    def _no_answer(self) -> TooLate:
        return TooLate(f"The server at {self.path} did not answer within {self.timeout:g} seconds.")


class Found(Record):
    """A control socket, with or without a server behind it."""

    path: str
    alive: bool


def find(path: str | None, name: str | None) -> Path:
    """Finds the control socket of a server: by path, by name, by the variable, or the only one.

    Raises NoServer with the directories that were searched.
    """
    if path is None and name is None:
        given = os.environ.get(VARIABLE, "")
        path = given if given not in ("", "auto") else None
    if path is not None:
        if not os.path.exists(path):
            raise NoServer(f"No control socket at {path}.")
        return Path(path)
    directories = looked_at()
    if name is not None:
        for directory in directories:
            link = os.path.join(directory, name + socket_path.SUFFIX)
            if os.path.exists(link):
                return Path(link)
        where = _list(directories)
        raise NoServer(f"No server is named {name!r} (proc_name): looked for {name}{socket_path.SUFFIX} in {where}.")
    alive = [each.path for each in sockets(directories) if each.alive]
    if len(alive) == 1:
        return Path(alive[0])
    if alive:
        raise NoServer(
            f"Several servers are running; `tricorn ctl ls` lists them. Select one with --socket: {', '.join(alive)}."
        )
    raise NoServer(f"No running server found: looked in {_list(directories)}.")


def is_named(path: str | None, name: str | None) -> bool:
    """Whether the server is specified: by these, by the variable, or by the service that this runs in."""
    given = os.environ.get(VARIABLE, "")
    own = any(each.own for each in socket_path.automatic(os.environ, os.geteuid()))
    return path is not None or name is not None or given not in ("", "auto") or own


def looked_at() -> list[str]:
    """Returns the directories with sockets of this user's servers, for root also of other users'; only safe ones."""
    uid = os.geteuid()
    wanted = {each.path: uid for each in socket_path.automatic(os.environ, uid)}
    wanted |= _of_systemd(uid)
    if uid == 0:
        wanted |= _of_other_users()
    return [directory for directory, owner in wanted.items() if socket_path.refusal(directory, owner) is None]


def sockets(directories: list[str]) -> list[Found]:
    """Returns every control socket in these directories. Symbolic links are other names of one."""
    found = []
    for directory in directories:
        for entry in sorted(os.listdir(directory)):
            path = os.path.join(directory, entry)
            is_named_so = entry.endswith(socket_path.SUFFIX) or entry == socket_path.IN_RUNTIME_DIRECTORY
            if is_named_so and _is_socket(path):
                found.append(Found(path, is_alive(path)))
    return found


def remove_dead(found: Found) -> None:
    """Removes a socket without a server, only from a directory of this user: others could swap it meanwhile."""
    if not found.alive and _owner(os.path.dirname(found.path)) == os.geteuid():
        try:
            os.unlink(found.path)
        except OSError:
            pass


def is_alive(path: str) -> bool:
    """Whether a server listens. The pid in a name proves nothing: it may belong to another container."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # it is busy, or not ours to ask
    return True


def _of_systemd(uid: int) -> dict[str, int]:
    """The runtime directories of services: $RUNTIME_DIRECTORY is known to the service alone."""
    found: dict[str, int] = {}
    for base in ("/run", f"/run/user/{uid}"):
        for name in _entries(base):
            directory = os.path.join(base, name)
            if "tricorn" in name and os.path.exists(os.path.join(directory, socket_path.IN_RUNTIME_DIRECTORY)):
                found[directory] = uid or _owner(directory)
    return found


def _of_other_users() -> dict[str, int]:
    found: dict[str, int] = {}
    for name in _entries("/tmp"):
        prefix, _, number = name.partition("-")
        if prefix == "tricorn" and number.isdigit():
            found[os.path.join("/tmp", name)] = int(number)
    for number in _entries("/run/user"):
        if number.isdigit():
            found[os.path.join("/run/user", number, "tricorn")] = int(number)
    return found


def _entries(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _owner(directory: str) -> int:
    try:
        return os.stat(directory).st_uid
    except OSError:
        return -1


def _list(directories: list[str]) -> str:
    return ", ".join(directories) or "no directory, because none of the usual ones exists"


def _mapped(descriptor: int, size: int) -> mmap.mmap:
    return mmap.mmap(descriptor, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)


_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
