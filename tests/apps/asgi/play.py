"""An ASGI application that does what the request says, step by step, and notes what comes of it.

The field X-Do holds the steps as a Python literal: a list of tuples of a step's name and its arguments (the functions
of `STEPS`). What they note is kept under the field X-Tag; `/told?tag=` has it, `/go?gate=` opens a gate that steps
wait for, `/scope` answers with its own scope, `/lifespan` with what was noted of the lifespan. All of these answer
with Python literals, so that a test sees the exact types.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextvars
import copy
import hashlib
import inspect
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

NOTES: dict[str, list[Any]] = defaultdict(list)
GATES: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
LIFESPAN: list[Any] = []
MARK: contextvars.ContextVar[str] = contextvars.ContextVar("MARK", default="unset")


class Actor:
    """One call of the application, which plays its steps in order."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        fields = {bytes(name).lower(): bytes(value).decode() for name, value in scope["headers"]}
        self.scope = scope
        self.receive_message = receive
        self.send_message = send
        self.tag = fields.get(b"x-tag", "untagged")
        self.steps: list[tuple[Any, ...]] = ast.literal_eval(fields[b"x-do"])
        self.tasks: list[asyncio.Task[None]] = []

    def note(self, *what: Any) -> None:
        NOTES[self.tag].append(what[0] if len(what) == 1 else what)

    async def play(self, steps: list[tuple[Any, ...]] | None = None) -> None:
        for name, *arguments in self.steps if steps is None else steps:
            await STEPS[name](self, *arguments)

    async def receive(self, within: float | None = None) -> None:
        """Notes the next message; or "nothing", if it does not come in time."""
        try:
            self.note(await asyncio.wait_for(self.receive_message(), within))
        except asyncio.TimeoutError:
            self.note("nothing")

    async def body(self) -> None:
        """Receives until the end of the body or of the connection; notes length, digest, types and the last message."""
        digest, sizes, types = hashlib.sha256(), [], set()
        while True:
            message = await self.receive_message()
            piece = message.get("body", b"")
            digest.update(piece)
            sizes.append(len(piece))
            types.add(type(piece).__name__)
            if not message.get("more_body"):
                break
        self.note({"length": sum(sizes), "sha256": digest.hexdigest(), "types": sorted(types), "last": message["type"]})

    async def sizes(self) -> None:
        """Receives until the end of the body; notes how many bytes each message had."""
        sizes, more = [], True
        while more:
            message = await self.receive_message()
            sizes.append(len(message.get("body", b"")))
            more = message.get("more_body", False)
        self.note(sizes)

    async def send(self, message: Message) -> None:
        await self.send_message(message)

    async def attempt(self, message: Any) -> None:
        """Sends what may be refused; notes `None`, or what kind of exception it was."""
        try:
            await self.send_message(message)
        except OSError:
            self.note("OSError")
        except Exception as error:
            self.note(type(error).__name__)
        else:
            self.note(None)

    async def send_made(self, message: Message, how: str) -> None:
        """Sends a message with what has no literal: `how` it is made of the bytes or the list in it."""
        makers = {"bytearray": bytearray, "memoryview": memoryview, "iterator": iter, "subclass": Subclass}
        key = "headers" if "headers" in message else "body"
        await self.send_message({**message, key: makers[how](message[key])})

    async def pour(self, count: int, size: int, progress: str = "") -> None:
        """Sends so many pieces of so many bytes each; how many it has sent stands in the file `progress`."""
        for number in range(count):
            await self.send_message({"type": "http.response.body", "body": b"p" * size, "more_body": True})
            if progress:
                write(progress, number + 1)

    async def pour_forever(self) -> None:
        """Sends pieces without end; notes what ends it."""
        try:
            while True:
                await self.send_message({"type": "http.response.body", "body": b"p" * 65_536, "more_body": True})
        except BaseException as error:
            self.note(type(error).__name__)
            raise

    async def receive_forever(self, most: int = 1 << 40) -> None:
        """Receives so many times, whatever comes; notes what ends it before."""
        try:
            for _ in range(most):
                await self.receive_message()
        except BaseException as error:
            self.note(type(error).__name__)
            raise

    async def protest(self, message: Any) -> None:
        """Sends what is refused; notes what is said of it, and the number and name of an OSError."""
        try:
            await self.send_message(message)
        except OSError as error:
            self.note(type(error).__name__, error.errno, error.filename)
        except Exception as error:
            self.note(type(error).__name__, str(error))

    async def send_within(self, message: Message, within: Message) -> None:
        """Sends a message whose headers send another one while they are read."""

        def headers() -> Any:
            with suppress(StopIteration):
                self.send_message(within).__await__().__next__()
            yield from message["headers"]

        await self.send_message({**message, "headers": headers()})

    async def inspect(self) -> None:
        """Notes what the standard library takes the two functions for."""
        for function in (self.receive_message, self.send_message):
            self.note(inspect.iscoroutinefunction(function), list(inspect.signature(function).parameters))

    async def echo(self) -> None:
        """Sends each piece of the request's body back as it comes."""
        while True:
            message = await self.receive_message()
            more = message.get("more_body", False)
            await self.send_message({"type": "http.response.body", "body": message.get("body", b""), "more_body": more})
            if not more:
                return

    async def echo_whole(self) -> None:
        """Sends the body of the request back in one message."""
        data, more = b"", True
        while more:
            message = await self.receive_message()
            data, more = data + message["body"], message.get("more_body", False)
        await self.send_message({"type": "http.response.start", "status": 200})
        await self.send_message({"type": "http.response.body", "body": data})

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, gate: str) -> None:
        await GATES[gate].wait()

    async def endless(self) -> None:
        """Waits for what never comes; notes how that ended."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.note("cancelled")
            raise
        finally:
            await asyncio.sleep(0)
            self.note("cleaned up")

    async def stubborn(self) -> None:
        """Takes no notice of being cancelled once."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.note("cancelled")

    async def fail(self, kind: str, text: str) -> None:
        kinds: dict[str, Callable[[str], BaseException]] = {
            "RuntimeError": RuntimeError,
            "SystemExit": SystemExit,
            "CancelledError": asyncio.CancelledError,
            "OSError": OSError,
            "ExceptionGroup": lambda text: getattr(builtins, "ExceptionGroup", Group)("group", [RuntimeError(text)]),
            "KeyboardInterrupt": KeyboardInterrupt,
        }
        raise kinds[kind](text)

    async def say(self, what: Any) -> None:
        self.note(what)

    async def beside(self, steps: list[tuple[Any, ...]]) -> None:
        """Plays steps in a task of their own."""
        self.tasks.append(asyncio.ensure_future(self.play(steps)))

    async def join(self) -> None:
        await asyncio.gather(*self.tasks)

    async def context(self, text: str = "") -> None:
        """Notes the mark in the context, and sets it."""
        self.note(MARK.get())
        MARK.set(text)

    async def task(self) -> None:
        """Notes whether this call has a task to itself."""
        current = asyncio.current_task()
        self.note(current is not None and current not in PLAYING)
        PLAYING.append(current)

    async def spoil(self) -> None:
        """Changes what it was given, as careless middlewares do."""
        self.scope["changed"] = True
        for value in list(self.scope.values()):
            if isinstance(value, list):
                value.append((b"changed", b"yes"))
            elif isinstance(value, dict):
                value["changed"] = True

    async def tell_scope(self) -> None:
        self.note(copy.deepcopy(self.scope))


def write(path: str, number: int) -> None:
    Path(path).write_text(str(number))


class Subclass(bytes):
    pass


class Group(Exception):
    """For Python 3.10, which has no groups: one whose only member is its cause."""

    def __init__(self, message: str, members: list[Exception]) -> None:
        super().__init__(message)
        self.__cause__ = members[0]


PLAYING: list[Any] = []
STEPS: dict[str, Callable[..., Awaitable[None]]] = {
    name: getattr(Actor, name) for name in vars(Actor) if not name.startswith("_") and name not in ("note", "play")
}


async def answer(send: Send, what: object) -> None:
    text = repr(what).encode()
    fields = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": text})


async def lifespan(scope: Message, receive: Receive, send: Send) -> None:
    LIFESPAN.append(dict(scope))
    LIFESPAN.append(await receive())
    scope["state"]["shared"] = ["from the lifespan"]
    scope["state"]["own"] = "from the lifespan"
    await send({"type": "lifespan.startup.complete"})
    LIFESPAN.append(await receive())
    await send({"type": "lifespan.shutdown.complete"})


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(scope, receive, send)
        return
    given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    match scope["path"]:
        case "/told":
            await answer(send, NOTES[given["tag"]])
        case "/go":
            GATES[given["gate"]].set()
            await answer(send, None)
        case "/lifespan":
            await answer(send, LIFESPAN)
        case "/pid":
            await answer(send, os.getpid())
        case "/tasks":
            await answer(send, len(asyncio.all_tasks()))
        case "/play":
            await Actor(scope, receive, send).play()
        case _:
            await answer(send, dict(scope))
