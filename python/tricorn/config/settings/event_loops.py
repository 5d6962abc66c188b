"""The worker classes that run on an event loop: asgi, tornado and aiohttp."""

from __future__ import annotations

from tricorn.config.setting import Section, Setting
from tricorn.config.validators import YEAR, Boolean, Bytes, Choice, Seconds, Text


class EventLoops(Section):
    SECTION = "Event Loops"

    asgi_loop = Setting(
        kind=Choice(("auto", "asyncio", "uvloop")),
        default="auto",
        help="Event loop of asgi workers: auto, asyncio or uvloop.",
        doc="`auto` uses uvloop if it is installed (`pip install 'tricorn[uvloop]'`), otherwise asyncio. If `uvloop` "
        "is set but not installed, the start fails; gunicorn falls back to asyncio. Other worker classes use the loop "
        "of their name.",
    )

    asgi_lifespan = Setting(
        kind=Choice(("auto", "on", "off")),
        default="auto",
        help="ASGI lifespan events (startup and shutdown): auto, on or off.",
        doc="An application that sends `lifespan.startup.failed` is not served: at the first start the server ends, "
        "at a reload the old workers keep serving. If an application raises or returns without an answer, `auto` "
        "serves it, since it may not support the protocol; `on` does not. The startup is part of the boot "
        "(`boot_timeout`). The shutdown always runs, after the last request; gunicorn skips it when WebSockets are "
        "open.",
    )

    asgi_disconnect_grace_period = Setting(
        kind=Seconds(max=YEAR),
        default=3,
        rare=True,
        help="Seconds an ASGI task may continue after its client disconnects.",
        doc="The application receives `http.disconnect` at once. By default, only tasks whose response is no longer "
        "read are cancelled after this time: a task that streams a response or has accepted a WebSocket and has not "
        "received the event, or that calls receive() again after it. A handler that has not begun its response runs "
        "to completion, as do clean-up and background tasks. If you set this, every task with an incomplete response "
        "is cancelled, as in gunicorn. Under `tornado` and `aiohttp` it is the time that a client which closed only "
        "its sending side may wait for the response. When the reader of an event stream (`text/event-stream`) closes "
        "its sending side, the task ends at once, unless you set this.",
    )

    asgi_pathsend = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        rare=True,
        help="Let ASGI applications send files by path (http.response.pathsend).",
        doc="Starlette's `FileResponse` and `StaticFiles` then pass the path, and the kernel sends the file, which is "
        "cheaper for large ones. Middleware must pass the event on. Some compressing middleware does not and loses "
        "the file (brotli-asgi, zstd-asgi, starlette-cramjam, and with the first Gradio); Starlette's "
        "`GZipMiddleware` passes it on uncompressed.",
    )

    root_path = Setting(
        kind=Text(),
        default="",
        help="Path prefix removed by the front end, for ASGI's root_path.",
        doc="It is `root_path` in the scope, and is prepended to `path`. For WSGI applications use SCRIPT_NAME.",
    )

    websocket_max_message_size = Setting(
        kind=Bytes(),
        default=16 << 20,
        help="Maximum size of a received WebSocket message in bytes; 0: unlimited.",
        doc="The size of the whole message after decompression, all fragments together. A larger one closes the "
        "connection with code 1009.",
    )

    websocket_ping_interval = Setting(
        kind=Seconds(max=YEAR),
        default=20,
        own=True,
        help="Ping a WebSocket client after this many seconds of silence; 0 disables it.",
        doc="Keeps proxies from closing idle connections, and detects clients that are gone. gunicorn sends no pings.",
    )

    websocket_ping_timeout = Setting(
        kind=Seconds(max=YEAR),
        default=20,
        own=True,
        rare=True,
        help="Seconds to wait for the answer to a WebSocket ping; 0: unlimited.",
        doc="Without an answer the connection is closed with code 1011, and the application receives 1006.",
    )

    websocket_compression = Setting(
        kind=Boolean(),
        default=True,
        own=True,
        rare=True,
        help="Disable WebSocket compression.",
        doc="By default permessage-deflate (RFC 7692) is negotiated with clients that offer it. gunicorn does not "
        "support it.",
    )
