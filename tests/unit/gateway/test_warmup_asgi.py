"""An ASGI application that answers a target of `warmup`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tricorn.errors import BootError
from tricorn.gateway.warmup import target_of
from tricorn.gateway.warmup_asgi import Call, make_scope


def answered(application: Callable[..., Any]) -> int | None:
    async def ask() -> int | None:
        call = Call(application, make_scope(target_of("/"), "", {}))
        await asyncio.wait_for(call.run(), 60)
        return call.status

    return asyncio.run(ask())


def test_the_client_leaves_when_the_response_is_complete() -> None:
    received = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        received.append((await receive())["type"])
        later = asyncio.ensure_future(receive())
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await asyncio.sleep(0)
        assert not later.done()
        await send({"type": "http.response.body"})
        received.append((await later)["type"])

    assert answered(application) == 201
    assert received == ["http.request", "http.disconnect"]


def test_work_after_the_response_is_waited_for() -> None:
    done = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})
        await asyncio.sleep(0.01)
        done.append(True)

    assert answered(application) == 200
    assert done == [True]


def test_no_response_is_an_error() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()

    with pytest.raises(BootError, match="did not start a response"):
        answered(application)
