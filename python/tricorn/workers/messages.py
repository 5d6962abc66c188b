"""Messages from a worker to its arbiter: one line each, over the worker's pipe.

    ready [stand-in]
    boot-failed <exit code> <reason>
    retire <reason>
    mold                                               it has drained, and can be forked
    no-mold <reason>                                   it cannot, and exits
    parted                                             with `reload`: the native monitor of a worker that leaves
    changed <path>
    notice <level> <subject> <text>                    for the log: what all workers would say alike, and one should
    stall <JSON>                                       the native monitor: the event loop was held up (`stall`)
    libraries <JSON>                                   versions of C libraries, as their modules tell them
    stuck <limit> <slot> <age in ms> <METHOD target>   the native monitor: a call is older than a limit allows,
                                                       or (`cancel`) an operator wants it to end
    Stack (most recent call first):                    faulthandler's C handler, on the thread that is stuck
      File "app.py", line 3 in slow                    (of a greenlet: the monitor, as its hub has told it)
    stuck-end <slot>                                   the monitor again: that was the stack

A line is shorter than PIPE_BUF, so that the kernel writes it whole; only the stack comes in pieces, which is why the
monitor lets one block end before it begins another. Load and liveness are no messages: they stand in the worker's page
of the scoreboard.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Literal, get_args

from tricorn.record import Record
from tricorn.workers import stall
from tricorn.workers.stall import Stall

TEXT_BYTES = 2048
"""Most bytes of a reason, a path or a request in a line."""
SUBJECT_BYTES = 512
LINE_BYTES = 4096
"""Maximum length of a line in bytes. Workers write none that is longer."""
MOST_DIGITS = 18
MOST_STATUS = 255
"""Highest exit status."""
STACK_LINES = 200
"""faulthandler itself stops at a hundred frames."""

Level = Literal["info", "warning", "error"]
Limit = Literal["timeout", "request_timeout", "cancel"]


class Ready(Record):
    """The application is loaded and requests are being taken."""

    stand_in: bool = False
    """It could not be loaded, and its traceback is served instead."""
    kind: str = ""
    """The worker's class, which `auto` has chosen by the application."""


class BootFailed(Record):
    """This worker is about to exit with `code` and never served."""

    code: int
    reason: str


class Retire(Record):
    """This worker has served long enough, says it, and serves on until it is told to drain."""

    reason: str
    """The setting that was reached, e.g. `max_requests`."""


class Parted(Record):
    """This worker leaves and has closed its idle connections: what their clients ask next, its successor answers."""


class IsMold(Record):
    """This worker has drained, and is the mold from now on (`refork`)."""


class NoMold(Record):
    """This worker has drained and cannot be the mold: something would not survive a fork. It exits."""

    reason: str


class Changed(Record):
    """The reloader saw that a file of the application is not the one that was loaded."""

    path: str


class Notice(Record):
    """A line for the log, wanted once: every worker with this application reports the same."""

    level: Level
    text: str
    subject: str = ""
    """With it the text may differ, and is logged from time to time."""


class Libraries(Record):
    """Versions of C libraries in the worker's process, sent once its application is loaded."""

    versions: Mapping[str, str]


class Stuck(Record):
    """A call is older, or has made no progress for longer, than the setting `limit` allows; told once for each.

    `cancel` is no setting: an operator wants the call to end.
    """

    limit: Limit
    slot: int
    """Which app thread."""
    age: float
    """Seconds since the application was called, or for `timeout` since its last progress."""
    request: str
    """`GET /path?query`, cut at 104 bytes."""
    stack: tuple[str, ...]
    """`File "app.py", line 3 in slow`, most recent call first; empty if the call ended before it could be asked."""


class StackLines(Record):
    """A stack without an announcement: the arbiter sent the signal itself, to a worker that is still booting.

    As many lines as had come; more may follow in a message of their own.
    """

    lines: tuple[str, ...]


Message = (
    Ready | BootFailed | Retire | IsMold | NoMold | Parted | Changed | Notice | Libraries | Stall | Stuck | StackLines
)


def encode(message: Message) -> bytes:
    """The bytes of a message; one `write` of them is whole but for stacks, which only the C handler writes."""
    match message:
        case Ready(stand_in, kind):
            return (b"stand-in %s\n" if stand_in else b"ready %s\n") % _line(kind.encode())
        case BootFailed(code, reason):
            return b"boot-failed %d %s\n" % (code, _line(reason.encode("utf-8", "replace")))
        case Retire(reason) | NoMold(reason):
            word = b"retire" if isinstance(message, Retire) else b"no-mold"
            return b"%s %s\n" % (word, _line(reason.encode("utf-8", "replace")))
        case IsMold() | Parted():
            return b"mold\n" if isinstance(message, IsMold) else b"parted\n"
        case Changed(path):
            return b"changed %s\n" % _line(os.fsencode(path), keep_spaces=True)
        case Notice(level, text, subject):
            # A path may have spaces; in the line it has none.
            about = b"?".join(os.fsencode(subject).split())[:SUBJECT_BYTES]
            return b"notice %s %s %s\n" % (level.encode(), about or _NONE, _line(text.encode("utf-8", "replace")))
        case Libraries(versions):
            return b"libraries %s\n" % _line(json.dumps(dict(versions)).encode())
        case Stall():
            raise TypeError("stalls are told by the native monitor")
        case Stuck(limit, slot, age, request, stack):
            first = b"stuck %s %d %d %s\n" % (limit.encode(), slot, round(age * 1000), _line(os.fsencode(request)))
            return first + (encode(StackLines(stack)) if stack else b"") + b"stuck-end %d\n" % slot
        case StackLines(lines):
            return _HEADER + b"\n" + b"".join(b"  %s\n" % _line(os.fsencode(line)) for line in lines)


def _line(text: bytes, *, keep_spaces: bool = False) -> bytes:
    words = text.replace(b"\n", b" ") if keep_spaces else b" ".join(text.split())
    return words[:TEXT_BYTES]


class Decoder:
    """Puts messages together from whatever pieces a read returned; what no worker says is passed over."""

    __slots__ = ("_loose", "_rest", "_stack", "_stuck")

    def __init__(self) -> None:
        self._rest = b""
        self._stuck: Stuck | None = None
        """The call whose stack is being read."""
        self._stack: list[str] = []
        self._loose: list[str] = []

    def feed(self, data: bytes) -> list[Message]:
        """The messages that these bytes complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            self._rest = b""
        messages: list[Message] = []
        for line in lines:
            if len(line) < LINE_BYTES:
                messages += self._take(line)
        return messages + self._end_loose()

    def close(self) -> list[Message]:
        """Returns the message that was still incomplete when the worker died."""
        return self._end_stuck()

    def _take(self, line: bytes) -> list[Message]:
        if (entry := _stack_entry(line)) is not None:
            kept = self._loose if self._stuck is None else self._stack
            if entry and len(kept) < STACK_LINES:
                kept.append(entry)
            return []
        before: list[Message] = self._end_loose()
        match line.split(b" ", 4):
            case [b"stuck", limit, slot, age, request] if _is_number(slot) and _is_number(age) and limit in _LIMITS:
                # Of a block without an end (the pipe was full) at least the beginning is told.
                before += self._end_stuck()
                self._stuck = Stuck(_LIMITS[limit], int(slot), int(age) / 1000, _text(request), ())
                return before
            case [b"stuck-end", slot] if _is_number(slot):
                return before + self._end_stuck()
        message = _decode(line)
        return before if message is None else [*before, message]

    def _end_stuck(self) -> list[Message]:
        stuck, self._stuck = self._stuck, None
        stack, self._stack = tuple(self._stack), []
        return [] if stuck is None else [Stuck(stuck.limit, stuck.slot, stuck.age, stuck.request, stack)]

    def _end_loose(self) -> list[Message]:
        lines, self._loose = tuple(self._loose), []
        return [StackLines(lines)] if lines else []


_BARE: dict[bytes, Message] = {b"mold": IsMold(), b"parted": Parted()}
_HEADER = b"Stack (most recent call first):"
_NONE = b"-"
_LEVELS: dict[bytes, Level] = {b"info": "info", b"warning": "warning", b"error": "error"}
_LIMITS: dict[bytes, Limit] = {name.encode(): name for name in get_args(Limit)}


def _stack_entry(line: bytes) -> str | None:
    """A line of a stack without its indentation, `""` for a heading, `None` for anything else."""
    if line.endswith(b"(most recent call first):") or line == b"<no Python frame>":
        return ""
    if line.startswith((b'  File "', b"  ...", b"  <")):
        return _text(line.strip())
    return None


def _decode(line: bytes) -> Message | None:
    """None for what no worker says: the application may have written to a descriptor that is not its own."""
    if (bare := _BARE.get(line)) is not None:
        return bare
    if line.startswith(b"no-mold "):
        return NoMold(_text(line.removeprefix(b"no-mold ")))
    if line.startswith(b"changed "):
        return Changed(os.fsdecode(line.removeprefix(b"changed ")))
    if line.startswith(b"retire "):
        return Retire(_text(line.removeprefix(b"retire ")))
    if line.startswith(b"stall "):
        return stall.parse(line.removeprefix(b"stall "))
    if line.startswith(b"libraries "):
        return _libraries(line.removeprefix(b"libraries "))
    match line.split(b" ", 3):
        case [b"notice", level, subject, text] if level in _LEVELS:
            return Notice(_LEVELS[level], _text(text), "" if subject == _NONE else os.fsdecode(subject))
    match line.split(b" ", 2):
        case [b"ready" | b"stand-in" as word, kind]:
            return Ready(stand_in=word == b"stand-in", kind=_text(kind))
        case [b"boot-failed", code, reason] if _is_number(code) and int(code) <= MOST_STATUS:
            return BootFailed(int(code), _text(reason))
    return None


def _libraries(data: bytes) -> Libraries | None:
    found = stall.json_object(data)
    if found is None:
        return None
    versions = {name[:64]: version[:64] for name, version in found.items() if isinstance(version, str)}
    return Libraries({name: version for name, version in versions.items() if version.isprintable()})


def _is_number(digits: bytes) -> bool:
    """Whether it is one that fits into 64 bits: a longer one is more than a float, or int() itself, can take."""
    return digits.isdigit() and len(digits) <= MOST_DIGITS


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
