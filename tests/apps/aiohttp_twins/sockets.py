"""WebSockets that echo, as those of `sockets` do: the end of each goes to standard output, a line each."""

from __future__ import annotations

import json
import sys

from aiohttp import WSMsgType, web


async def echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    told = {"what": "disconnect", "code": socket.close_code, "name": request.query.get("name", "")}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    return socket


application = web.Application()
application.router.add_route("*", "/echo", echo)
