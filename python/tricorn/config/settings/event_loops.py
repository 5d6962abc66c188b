"""The worker classes that run on an event loop: asgi, tornado and aiohttp."""

from __future__ import annotations

from tricorn.config.setting import Section, Setting
from tricorn.config.validators import YEAR, Boolean, Bytes, Choice, Seconds, Text


class EventLoops(Section):
    SECTION = "Event Loops"

    asgi_loop = Setting(
        kind=Choice(("auto", "asyncio", "uvloop")),
        default="auto",
        help="The event loop of asgi workers: auto, asyncio or uvloop.",
        doc="`auto` is uvloop where it is installed (`pip install 'tricorn[uvloop]'`), else asyncio. Asking for "
        "uvloop where it is not installed is an error; gunicorn takes asyncio then. Other classes have the loop of "
        "their name.",
    )

    asgi_lifespan = Setting(
        kind=Choice(("auto", "on", "off")),
        default="auto",
        help="Whether an ASGI application is told of start and end (lifespan): auto, on or off.",
        doc="An application that says `lifespan.startup.failed` is not served: on the first start that ends the "
        "server, on a reload the old workers go on. With `auto` one that raises or returns without an answer is "
        "served, since it may not speak the protocol; with `on` it is not. The startup is part of the boot "
        "(`boot_timeout`); the shutdown comes after the last request, and always: gunicorn leaves it out when "
        "WebSockets are open.",
    )

    asgi_disconnect_grace_period = Setting(
        kind=Seconds(max=YEAR),
        default=3,
        rare=True,
        help="Seconds an ASGI task may go on after its client disconnected.",
        doc="The application receives `http.disconnect` at once. By default only a task whose response is no longer "
        "read is cancelled after this time: one that streams a response, or has accepted a WebSocket, and was not told "
        "yet, or one that asks again after it was told. A handler that has not begun its response runs to its end, and "
        "so do clean-up and background work. Once this setting is given, it cancels every task whose response is not "
        "complete, as in gunicorn. Under `tornado` and `aiohttp`: how long a client that only closed its sending side "
        "may wait for its response. The reader of an event stream (`text/event-stream`) that closes its sending side "
        "has left: such a task ends at once, unless this setting is given.",
    )

    asgi_pathsend = Setting(
        kind=Boolean(),
        default=False,
        own=True,
        rare=True,
        help="Offer ASGI applications to send files by path (http.response.pathsend).",
        doc="Starlette's `FileResponse` and `StaticFiles` then name their files, and the kernel sends them: less work "
        "for large ones. Middleware has to pass the event on. Some of those that compress do not, and the file is lost "
        "in them (brotli-asgi, zstd-asgi, starlette-cramjam, and with the first Gradio); Starlette's `GZipMiddleware` "
        "passes it on uncompressed.",
    )

    root_path = Setting(
        kind=Text(),
        default="",
        help="The path prefix that a front end takes away, for root_path of ASGI.",
        doc="It stands in the scope as `root_path`, and `path` begins with it. WSGI applications take SCRIPT_NAME.",
    )

    websocket_max_message_size = Setting(
        kind=Bytes(),
        default=16 << 20,
        help="The maximum size of a received WebSocket message in bytes; 0 is no limit.",
        doc="Of a message as the application gets it, all fragments together and inflated. A longer one closes the "
        "connection with code 1009.",
    )

    websocket_ping_interval = Setting(
        kind=Seconds(max=YEAR),
        default=20,
        own=True,
        help="Seconds of silence after which a WebSocket's client is sent a ping; 0 switches it off.",
        doc="It keeps proxies from closing idle connections, and finds clients that are gone. gunicorn sends none.",
    )

    websocket_ping_timeout = Setting(
        kind=Seconds(max=YEAR),
        default=20,
        own=True,
        rare=True,
        help="Seconds a WebSocket's client may take to answer a ping; 0 is as long as it likes.",
        doc="A client that does not is gone: the connection is closed with code 1011, and the application is told "
        "1006.",
    )

    websocket_compression = Setting(
        kind=Boolean(),
        default=True,
        own=True,
        rare=True,
        help="Leaves messages of WebSockets uncompressed.",
        doc="Otherwise permessage-deflate (RFC 7692) is agreed on with clients that offer it. gunicorn has none.",
    )
