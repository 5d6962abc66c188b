"""The control socket's two framings and its words, with thousands of requests of which most were good once.

TRICORN_MUTANTS says how many, TRICORN_SEED which; `make fuzz` makes new ones. A failure names its seed.
"""

from __future__ import annotations

import json
import os
import random
import selectors
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
from tricorn.arbiter.control import gunicorn
from tricorn.arbiter.control.commands import LOOKS, Meaning, parse
from tricorn.arbiter.control.listener import MOST_CLIENTS, PIECE
from tricorn.arbiter.control.session import MOST_REQUEST, MOST_VALUES, Answered, Broken, Frame, Request, Session
from tricorn.arbiter.policy.arguments import Arguments, Refusal
from tricorn.arbiter.policy.commands import Kind
from tricorn.control.client import Control

from tests.harness import REFERENCE, proc
from tests.harness.deadline import until
from tests.harness.site import Site
from tests.harness.wire import drain

MUTANTS = int(os.environ.get("TRICORN_MUTANTS", "1200"))
SEED = int(os.environ.get("TRICORN_SEED", "20261125"))

pytestmark = [
    pytest.mark.skipif(REFERENCE, reason="it is about tricorn's own socket"),
    pytest.mark.timeout(300),
]

WORDS = [*LOOKS, "events", "reload", "scale", "drain", "kill", "cancel", "stacks", "profile", "ready", "log-level"]
COMMANDS = ["show", "show all", "show workers", "show stats", "show config", "show listeners", "show dirty", "help"]
NAMES = [
    "slot",
    "pid",
    "place",
    "start",
    "workers",
    "wait",
    "on",
    "level",
    "seconds",
    "rate",
    "older",
    "since",
    "brief",
]
VALUES: list[object] = [
    *(0, 1, 3, -1, 1 << 31, 1 << 64, 10**40, 0.5, 1e308, True, False, None),
    *("", "auto", "+2", "-1", "6", "minute", "debug", "x" * 300, "\0\x1b", "\u202e٣", "\ud800", "'", '"', "1" * 5000),
    *([], {}, [1, [2, [3]]], {"a": {"b": []}}),
]
PIECES = [
    b"{",
    b"}",
    b"[",
    b'"',
    b",",
    b":",
    b"\n",
    b"\0",
    b"\\",
    b"\\ud800",
    b"\xff",
    b"\xef\xbb\xbf",
    b"1e999",
    b"NaN",
    b"-",
]


class Stream:
    """What one client sends, and what is to be understood of it: all of it if it was not `changed`."""

    def __init__(self, seed: int, words: Sequence[str], commands: Sequence[str]) -> None:
        self.seed = seed
        self.dice = dice = random.Random(seed)
        self.frames = dice.random() < 0.5
        self.expected: list[Request | Frame] = []
        whole = [self._frame(commands) if self.frames else self._line(words) for _ in range(dice.randrange(1, 5))]
        self.data = bytearray(b"".join(whole))
        self.changed = dice.random() < 0.8
        if self.changed:
            for _ in range(dice.randrange(1, 4)):
                self._change()

    def _line(self, words: Sequence[str]) -> bytes:
        dice = self.dice
        word, given = dice.choice(words), {name: dice.choice(VALUES) for name in dice.sample(NAMES, dice.randrange(3))}
        identity = dice.choice([0, 7, "a", None])
        self.expected.append(Request(identity, word, given))
        return json.dumps({"id": identity, "do": word, **given}, ensure_ascii=True).encode() + b"\n"

    def _frame(self, commands: Sequence[str]) -> bytes:
        dice = self.dice
        command = dice.choice(commands)
        args = [dice.choice(VALUES) for _ in range(dice.randrange(3))] if dice.random() < 0.3 else []
        self.expected.append(Frame(5, command, args))
        text = json.dumps({"id": 5, "command": command, "args": args}).encode()
        return len(text).to_bytes(4, "big") + text

    def _change(self) -> None:
        dice, data = self.dice, self.data
        at = dice.randrange(len(data) + 1)
        match dice.randrange(7):
            case 0:
                data[at : at + 1] = bytes([dice.randrange(256)])
            case 1:
                data[at:at] = dice.choice(PIECES) * dice.choice([1, 1, 1, MOST_VALUES, 70_000])
            case 2:
                del data[at : at + dice.randint(1, 8)]
            case 3:
                data[at:at] = data[at : at + dice.randint(1, 40)] * dice.randint(1, 3)
            case 4:
                del data[at:]
            case 5:  # the first byte decides on the framing
                data[:1] = dice.choice([b"{", b"\0", b"", b" ", b"\x01"])
            case _:
                data[:4] = dice.choice([0, 1, 2, MOST_REQUEST, MOST_REQUEST + 1, 1 << 24, (1 << 32) - 1]).to_bytes(
                    4, "big"
                )

    def cut(self, most: int) -> Iterator[bytes]:
        """The same bytes, as the kernel may hand them out."""
        at = 0
        while at < len(self.data):
            step = self.dice.randint(1, most)
            yield bytes(self.data[at : at + step])
            at += step


def understood(pieces: Iterator[bytes]) -> list[Request | Frame | Broken]:
    session, found = Session(), []
    for piece in pieces:
        session.feed(piece)
        while (request := session.next()) is not None:
            found.append(request)
            if isinstance(request, Broken):
                return found
        held = len(session._buffer)
        assert held <= MOST_REQUEST + 4, f"{held} bytes are held of a client that has sent no whole request"
    return found


def streams(count: int, words: Sequence[str] = WORDS, commands: Sequence[str] = COMMANDS) -> Iterator[Stream]:
    return (Stream(SEED * 1_000_003 + number, words, commands) for number in range(count))


def test_what_is_understood_does_not_depend_on_where_the_bytes_were_cut() -> None:
    seen: Counter[str] = Counter()
    for stream in streams(MUTANTS):
        whole = understood(stream.cut(PIECE))
        if len(stream.data) < 2000:
            assert understood(stream.cut(1)) == whole, stream.seed
        assert understood(stream.cut(97)) == whole, stream.seed
        if not stream.changed:
            assert whole == stream.expected, stream.seed
        seen.update(type(each).__name__ for each in whole)
        seen["whole"] += not stream.changed
    assert min(seen["Request"], seen["Frame"], seen["Broken"], seen["whole"]) > MUTANTS / 20, seen


def test_every_answer_can_be_read_in_the_framing_of_its_request() -> None:
    for stream in streams(MUTANTS // 10):
        session = Session()
        session.feed(bytes(stream.data[:PIECE]))
        session.next()
        answer = {"id": 1, "text": stream.dice.choice(VALUES)}
        data = session.encode(answer)
        if session._frames:
            assert int.from_bytes(data[:4], "big") == len(data) - 4
            assert json.loads(data[4:]) == answer
        else:
            assert data.index(b"\n") == len(data) - 1
            assert json.loads(data) == answer


def judged(request: Request) -> Meaning | Refusal:
    try:
        arguments = Arguments(
            request.word, request.arguments, lambda by, value: value if value < 4 else None, lambda: (1, 2)
        )
        return parse(arguments)
    except Refusal as refusal:
        return refusal


def test_every_request_has_a_meaning_or_is_refused_with_a_sentence() -> None:
    """Whatever the types of its arguments are, and in whichever framing it came."""
    seen: Counter[str] = Counter()
    commands = [*COMMANDS, "worker add", "worker remove", "worker kill", "worker", "dirty", "shutdown", "reload", "'"]
    for stream in streams(MUTANTS, commands=commands):
        for request in understood(stream.cut(PIECE)):
            translated = gunicorn.translate(request) if isinstance(request, Frame) else request
            match translated:
                case Answered(_, {"error": str(error)}):
                    assert 10 < len(error) < 500, stream.seed
                    seen["refused"] += 1
                case Request():
                    found = judged(translated)
                    if isinstance(found, Refusal):
                        assert found.kind in get_args(Kind), stream.seed
                        assert 10 < len(str(found)) < 500, stream.seed
                        assert not isinstance(request, Frame) or found.kind == "refused", stream.seed
                        answer = translated.translate({"ok": False, "kind": found.kind, "error": str(found)})
                        assert {"ok", "status"} & answer.keys(), stream.seed
                    seen["refused" if isinstance(found, Refusal) else "meant"] += 1
    assert min(seen["meant"], seen["refused"]) > MUTANTS / 20, seen


class Client:
    """Sends a stream, and reads what comes until the server closes, or nothing more can come."""

    def __init__(self, path: Path, stream: Stream) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        self.answer = b""
        with suppress(OSError):  # refused before its end
            self.socket.sendall(stream.data)
            self.socket.shutdown(socket.SHUT_WR)
        self.socket.setblocking(False)

    def listen(self) -> bool:
        """Whether it is over."""
        read, is_over = drain(self.socket)
        self.answer += read
        return is_over


def test_a_server_answers_or_closes_and_goes_on(tmp_path: Path) -> None:
    """Only words that look: what a mutant could do to the server is not the question."""
    path = Path(f"/tmp/tricorn-control-mutants-{os.getpid()}")
    looks = [word for word in LOOKS if word != "pages"] + ["stacks", "nonsense"]
    with Site(f"control_socket = {str(path)!r}\n") as server, Control.connect(path, 60) as control:
        until(lambda: control.ask("status")["ready"], "it serves")
        worker, held = server.worker_pids(), proc.descriptors(server.pid)
        answers = 0
        source, running = streams(MUTANTS // 6, words=looks), set[Client]()
        with selectors.DefaultSelector() as selector:
            while True:
                while len(running) < MOST_CLIENTS - 1 and (stream := next(source, None)) is not None:
                    client = Client(path, stream)
                    running.add(client)
                    selector.register(client.socket, selectors.EVENT_READ, client)
                if not running:
                    break
                ready = selector.select(20)
                assert ready, "none of them is answered or closed"
                for key, _ in ready:
                    if key.data.listen():
                        answers += b'"ok"' in key.data.answer or b'"status"' in key.data.answer
                        selector.unregister(key.data.socket)
                        key.data.socket.close()
                        running.discard(key.data)
        assert answers > MUTANTS / 20
        assert control.ask("status")["ready"]
        until(lambda: proc.descriptors(server.pid) <= held, "every descriptor is given back")
        assert server.worker_pids() == worker
        assert server.get("/hello").status == 200
        assert not server.log.matching("Traceback")
