"""WebSockets of ASGI 3, one behaviour per path. What the application was told goes to standard output, a line each."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_gates: dict[str, asyncio.Event] = {}


def say(what: str, **more: Any) -> None:
    # One write: where the stream is not buffered, `print` makes two, and a line of the access log may come in between.
    sys.stdout.write(json.dumps({"what": what, **more}) + "\n")
    sys.stdout.flush()


def gate(name: str) -> asyncio.Event:
    return _gates.setdefault(name, asyncio.Event())


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            scope.get("state", {})["answer"] = 42
            await send({"type": "lifespan.startup.complete"})
        say("shutdown")
        await send({"type": "lifespan.shutdown.complete"})
    elif scope["type"] == "http":
        await http(scope, send)
    else:
        name = scope["path"].strip("/").replace("-", "_")
        options = {key: values[0] for key, values in parse_qs(scope["query_string"].decode()).items()}
        await BEHAVIOURS[name](scope, receive, send, **options)


async def http(scope: Message, send: Send) -> None:
    if scope["path"].startswith("/open/"):
        gate(scope["path"].removeprefix("/open/")).set()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
    await send({"type": "http.response.body", "body": b"Hello\n"})


async def accept(receive: Receive, send: Send, **more: Any) -> None:
    assert await receive() == {"type": "websocket.connect"}
    await send({"type": "websocket.accept", **more})


async def messages(receive: Receive, name: str = "") -> Any:
    """Every message until the end, which is told."""
    while (event := await receive())["type"] == "websocket.receive":
        yield event
    say("disconnect", code=event["code"], reason=event.get("reason"), name=name)


async def echo(scope: Message, receive: Receive, send: Send, name: str = "") -> None:
    await accept(receive, send)
    async for event in messages(receive, name):
        if event.get("text") is not None:
            await send({"type": "websocket.send", "text": event["text"]})
        else:
            await send({"type": "websocket.send", "bytes": event["bytes"]})


async def events(scope: Message, receive: Receive, send: Send) -> None:
    """Tells what every event holds."""
    await accept(receive, send)
    async for event in messages(receive):
        await send({"type": "websocket.send", "text": repr(sorted(event.items()))})


async def the_scope(scope: Message, receive: Receive, send: Send, **_: str) -> None:
    await accept(receive, send)
    await send({"type": "websocket.send", "text": repr({key: scope[key] for key in sorted(scope)})})
    async for _ in messages(receive):
        pass


async def subprotocol(scope: Message, receive: Receive, send: Send, choose: str = "") -> None:
    await accept(receive, send, subprotocol=choose or None)
    await send({"type": "websocket.send", "text": repr(scope["subprotocols"])})


async def fields(scope: Message, receive: Receive, send: Send) -> None:
    await accept(receive, send, headers=[(b"x-one", b"1"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")])
    async for _ in messages(receive):
        pass


async def bad_field(scope: Message, receive: Receive, send: Send, name: str = "x-a", value: str = "b") -> None:
    await accept(receive, send, headers=[(name.encode("latin-1"), value.encode("latin-1"))])


async def close(scope: Message, receive: Receive, send: Send, code: str = "", reason: str = "") -> None:
    await accept(receive, send)
    event: Message = {"type": "websocket.close"}
    if code:
        event["code"] = int(code)
    if reason:
        event["reason"] = reason
    await send(event)
    async for _ in messages(receive):
        pass


async def close_and_send(scope: Message, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    await send({"type": "websocket.close"})
    try:
        await send({"type": "websocket.send", "text": "too late"})
    except BaseException as error:
        say("raised", os_error=isinstance(error, OSError), kind=type(error).__name__)


async def send_after_leaving(scope: Message, receive: Receive, send: Send) -> None:
    """Sends when the client has gone and that was told."""
    await accept(receive, send)
    async for _ in messages(receive):
        pass
    try:
        await send({"type": "websocket.send", "text": "not heard"})
    except BaseException as error:
        say("raised", os_error=isinstance(error, OSError), kind=type(error).__name__)


async def reject(scope: Message, receive: Receive, send: Send, odd: str = "") -> None:
    """With what could not be sent over a WebSocket, as FastAPI's handler of invalid parameters does, if it is odd."""
    await receive()
    more: Message = {"code": 8, "reason": [{"msg": "Field required"}]} if odd else {}
    await send({"type": "websocket.close", **more})


async def again_and_again(scope: Message, receive: Receive, send: Send, what: str = "receive") -> None:
    """Receives, or sends, without end, whatever comes of it; tells what ends it."""
    await accept(receive, send)
    say("begins", name=what)
    try:
        while True:
            try:
                if what == "receive":
                    await receive()
                else:
                    await send({"type": "websocket.send", "text": "a"})
            except OSError:
                pass
    except BaseException as error:
        say("ended", name=what, kind=type(error).__name__)
        raise


async def clean_up(scope: Message, receive: Receive, send: Send, name: str = "") -> None:
    """Goes on when its client has left, until the test opens the gate; closes what is closed."""
    await accept(receive, send)
    async for _ in messages(receive, name):
        pass
    await gate(name).wait()
    await send({"type": "websocket.close", "code": 1000})
    say("cleaned up", name=name)


async def silent(scope: Message, receive: Receive, send: Send, name: str = "") -> None:
    """Waits for something else than its client."""
    await accept(receive, send)
    try:
        await asyncio.Event().wait()
    finally:
        say("silence is over", name=name)


async def raise_later(scope: Message, receive: Receive, send: Send, how: str = "", marker: str = "") -> None:
    """Lets an exception out when its client has left: one of its own, or what it makes of ours."""
    await accept(receive, send)
    async for _ in messages(receive):
        pass
    try:
        await send({"type": "websocket.send", "text": "not heard"})
    except OSError as error:
        if how == "cause":
            raise RuntimeError(marker) from error
        if how == "context":
            raise RuntimeError(marker)  # noqa: B904
        if how == "group":
            from builtins import ExceptionGroup

            raise ExceptionGroup(marker, [ExceptionGroup("inner", [error])])  # noqa: B904
        if how == "same":
            raise
    say("raises", name=marker)
    raise RuntimeError(marker)


async def deny(scope: Message, receive: Receive, send: Send, status: str = "401") -> None:
    await receive()
    head = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Basic")]
    await send({"type": "websocket.http.response.start", "status": int(status), "headers": head})
    await send({"type": "websocket.http.response.body", "body": b"who ", "more_body": True})
    await send({"type": "websocket.http.response.body", "body": b"are you"})
    say("denied", event=(await receive())["type"])


async def deny_flood(scope: Message, receive: Receive, send: Send, name: str = "") -> None:
    """Denies at length, and tells how that ends."""
    await receive()
    await send({"type": "websocket.http.response.start", "status": 403, "headers": []})
    say("denying", name=name)
    try:
        for _ in range(400):
            await send({"type": "websocket.http.response.body", "body": b"x" * 65536, "more_body": True})
        await send({"type": "websocket.http.response.body"})
    except OSError:
        say("denied in vain", name=name)
    else:
        say("denied at length", name=name)


async def return_at_once(scope: Message, receive: Receive, send: Send) -> None:
    await receive()


async def raise_at_once(scope: Message, receive: Receive, send: Send) -> None:
    await receive()
    raise RuntimeError("before accept")


async def return_open(scope: Message, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    await send({"type": "websocket.send", "text": "last words"})


async def raise_open(scope: Message, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    raise RuntimeError("after accept")


async def before_accept(scope: Message, receive: Receive, send: Send, event: str = "websocket.send") -> None:
    """An event that may not come yet."""
    await receive()
    try:
        await send({"type": event, "text": "early"})
    except BaseException as error:
        say("raised", kind=type(error).__name__)
        raise


async def wrong_event(scope: Message, receive: Receive, send: Send, kind: str = "") -> None:
    """Events that no application may send; each must raise."""
    await accept(receive, send)
    wrong: dict[str, Any] = {
        "type": {"type": "http.response.body"},
        "accept": {"type": "websocket.accept"},
        "nothing": {"type": "websocket.send"},
        "both": {"type": "websocket.send", "text": "a", "bytes": b"b"},
        "text": {"type": "websocket.send", "text": b"bytes"},
        "bytes": {"type": "websocket.send", "bytes": "text"},
        "code": {"type": "websocket.close", "code": 1005},
        "small": {"type": "websocket.close", "code": 999},
        "huge": {"type": "websocket.close", "code": 1 << 40},
        "word": {"type": "websocket.close", "code": "1000"},
        "reason": {"type": "websocket.close", "reason": [{"msg": "Field required"}]},
    }
    try:
        await send(wrong[kind])
    except Exception as error:
        text = "out of range" if "out of range" in str(error) else type(error).__name__
        await send({"type": "websocket.send", "text": text})
    else:
        await send({"type": "websocket.send", "text": "nothing was raised"})


async def gated(scope: Message, receive: Receive, send: Send, name: str = "gate") -> None:
    """Reads nothing until the test opens the gate, then echoes."""
    await accept(receive, send)
    await gate(name).wait()
    async for event in messages(receive, name):
        data = event.get("text") or ""
        await send({"type": "websocket.send", "text": str(len(data or event.get("bytes") or b""))})


async def gated_accept(scope: Message, receive: Receive, send: Send, name: str = "gate") -> None:
    say("asked", name=name)
    await gate(name).wait()
    try:
        await echo(scope, receive, send, name)
    except OSError as error:
        say("too late", kind=type(error).__name__, name=name)


async def flood(scope: Message, receive: Receive, send: Send, count: str = "1000", size: str = "65536") -> None:
    """Sends without listening, and tells how far it came."""
    await accept(receive, send)
    data = b"x" * int(size)
    for number in range(int(count)):
        say("sending", number=number)
        await send({"type": "websocket.send", "bytes": data})
    say("flooded")
    async for _ in messages(receive):
        pass


async def ticker(scope: Message, receive: Receive, send: Send) -> None:
    """Sends and receives at the same time, in two tasks."""
    await accept(receive, send)

    async def tick() -> None:
        for number in range(3):
            await asyncio.sleep(0.01)
            await send({"type": "websocket.send", "text": f"tick {number}"})

    ticking = asyncio.create_task(tick())
    async for event in messages(receive):
        await send({"type": "websocket.send", "text": event["text"]})
    await ticking


async def cancelled(scope: Message, receive: Receive, send: Send) -> None:
    """Waits for a message with a timeout that comes first, then goes on as if nothing was."""
    await accept(receive, send)
    for _ in range(3):
        try:
            await asyncio.wait_for(receive(), 0.01)
        except asyncio.TimeoutError:
            await send({"type": "websocket.send", "text": "nothing yet"})
    async for event in messages(receive):
        await send({"type": "websocket.send", "text": event["text"]})


async def many(scope: Message, receive: Receive, send: Send, count: str = "10") -> None:
    """Answers every message with several."""
    await accept(receive, send)
    async for event in messages(receive):
        for number in range(int(count)):
            await send({"type": "websocket.send", "text": f"{event['text']} {number}"})


BEHAVIOURS: dict[str, Any] = {
    behaviour.__name__: behaviour
    for behaviour in (
        echo,
        events,
        the_scope,
        subprotocol,
        fields,
        bad_field,
        close,
        close_and_send,
        send_after_leaving,
        reject,
        again_and_again,
        clean_up,
        silent,
        raise_later,
        deny,
        deny_flood,
        return_at_once,
        raise_at_once,
        return_open,
        raise_open,
        before_accept,
        wrong_event,
        gated,
        gated_accept,
        flood,
        ticker,
        cancelled,
        many,
    )
}
