"""The cases, one record each: an application, the servers that can run it, and what is sent."""

from __future__ import annotations

import json

from benches.harness.lines import QUICK, Line
from benches.harness.process import ROOT
from benches.harness.servers import PATIENT

DOCUMENT = json.dumps({"items": [{"id": n, "price": n * 1.25, "text": "lorem ipsum " * 16} for n in range(40)]})[:-1]
DOCUMENT = DOCUMENT + ', "padding": "' + "p" * (10_240 - len(DOCUMENT) - 15) + '"}'
BODIES = {"document.json": DOCUMENT.encode(), "megabyte": b"x" * 2**20}

BROWSER = (
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language: en-US,en;q=0.5",
    "Accept-Encoding: gzip, deflate, br, zstd",
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; csrftoken=fedcba9876543210",
    "Upgrade-Insecure-Requests: 1",
    "Sec-Fetch-Dest: document",
    "Sec-Fetch-Mode: navigate",
    "Sec-Fetch-Site: none",
    "Priority: u=0, i",
)
JSON = ("-H", "Content-Type: application/json", "--data-file", str(QUICK / "document.json"))

WSGI = (
    "tricorn sync -w 1",
    "tricorn gthread -w 1 --threads 4",
    "tricorn gevent -w 1",
    "tricorn eventlet -w 1",
    *("fastwsgi", "bjoern", "fastpysgi", "meinheld", "granian --workers 1 --http 1 --no-ws", "waitress --threads=4"),
    "gunicorn gevent -w 1",
    "gunicorn gthread -w 1 --threads 4",
    "gunicorn sync -w 1",
)
WSGI_FRAMEWORKS = (
    *("tricorn sync -w 1", *(f"tricorn gthread -w 1 --threads {count}" for count in (2, 8, 32)), "tricorn gevent -w 1"),
    *("bjoern", "fastpysgi", *(f"granian --workers 1 --http 1 --no-ws --blocking-threads {count}" for count in (1, 8))),
    *("gunicorn sync -w 1", "gunicorn gthread -w 1 --threads 8", "gunicorn gevent -w 1"),
)
# Peers with the fastest parts that they have.
UVICORN = "uvicorn --loop uvloop --http httptools"
GRANIAN = "granian --workers 1 --http 1 --loop uvloop"
GUNICORN = "gunicorn asgi -w 1 --asgi-loop uvloop"
ASGI = (
    *("tricorn asgi -w 1", "tricorn asgi -w 1 --asgi-loop asyncio"),
    *(UVICORN, f"{GRANIAN} --no-ws", "fastpysgi", GUNICORN, "hypercorn --worker-class uvloop"),
)
# Frameworks under each loop, since their users choose between them.
FRAMEWORKS = (
    *("tricorn asgi -w 1", "tricorn asgi -w 1 --asgi-loop asyncio"),
    *("uvicorn --loop uvloop --http httptools", "uvicorn --loop asyncio --http h11"),
    *(f"granian --workers 1 --http 1 --no-ws --loop {loop}" for loop in ("uvloop", "asyncio")),
    *(f"hypercorn --worker-class {loop}" for loop in ("uvloop", "asyncio")),
)
WEBSOCKET = (
    f"tricorn asgi -w 1 {PATIENT}",
    f"{UVICORN} --ws websockets",
    f"{UVICORN} --ws websockets-sansio",
    f"{GRANIAN} --ws",
    f"{GUNICORN} {PATIENT}",
)
LOGGED = tuple(
    f"{line} --access-logfile {QUICK / 'access.log'}" for line in WSGI if line.startswith(("tricorn", "gunicorn"))
)
AIOHTTP = ("tricorn aiohttp.GunicornWebWorker -w 1", "tricorn aiohttp.GunicornUVLoopWebWorker -w 1", "aiohttp-web")
PRELOADED = tuple(
    f"{server} {shape} --preload"
    for shape in ("sync -w 4", "gthread -w 4 --threads 4")
    for server in ("tricorn", "gunicorn")
)


def write_bodies() -> None:
    (ROOT / QUICK).mkdir(parents=True, exist_ok=True)
    (ROOT / QUICK / "access.log").unlink(missing_ok=True)
    for name, body in BODIES.items():
        (ROOT / QUICK / name).write_bytes(body)


def _case(name: str, question: str, *words: str, servers: tuple[str, ...] = WSGI, app: str = "wsgi") -> Line:
    module, _, attribute = app.partition(":")
    return Line(name, question, f"benches.apps.{module}:{attribute or 'app'}", servers, words)


LINES = [
    _case("hello", "13 bytes, keep-alive"),
    _case("hello-browser", "the same with a browser's headers", *(word for one in BROWSER for word in ("-H", one))),
    _case("hello-accesslog", "each request logged to a file", servers=LOGGED),
    _case("connection-per-request", "new connection for each request", "--close"),
    _case("json-echo-10k", "POST of 10 KB JSON, parsed and sent back", "--path", "/json", *JSON),
    _case("response-1m", "1 MiB out", "--path", "/megabyte"),
    _case("upload-1m", "1 MiB in", "--path", "/count", "--data-file", str(QUICK / "megabyte")),
    _case("stream-100", "100 chunks of 1 KiB, no length", "--path", "/stream"),
    _case("flask", "a constant through Flask", "--path", "/constant", app="flask"),
    _case("flask-json", "JSON from Flask", "--path", "/json", servers=WSGI_FRAMEWORKS, app="flask"),
    _case("django-wsgi", "JSON from Django under WSGI", "--path", "/def", servers=WSGI_FRAMEWORKS, app="django:wsgi"),
    _case("preloaded", "four workers, forked after the application was loaded: what they weigh", servers=PRELOADED),
    _case("asgi-hello", "13 bytes, keep-alive, no framework", servers=ASGI, app="asgi"),
    _case("asgi-post-10k", "POST of 10 KB, sent back", "--path", "/echo", *JSON, servers=ASGI, app="asgi"),
    *(
        _case(name, question, "--path", path, servers=FRAMEWORKS, app=app)
        for name, question, path, app in (
            ("fastapi-def", "JSON from a FastAPI endpoint in a thread", "/def", "fastapi"),
            ("fastapi-async", "JSON from a FastAPI endpoint on the loop", "/async", "fastapi"),
            ("starlette", "JSON through Starlette", "/", "starlette"),
            ("starlette-middlewares", "the same through three middlewares", "/", "starlette:behind_middlewares"),
            ("starlette-stream", "100 chunks of 1 KiB from a StreamingResponse", "/stream", "starlette"),
            ("django-async", "JSON from a coroutine view of Django", "/async", "django"),
            ("django-def", "JSON from a view in a thread", "/def", "django"),
        )
    ),
    *(
        _case(
            f"ws-{name}{'-deflate' * deflate}",
            f"64 WebSockets, messages of {name}{' with permessage-deflate' * deflate}, one on its way in each",
            *("--websocket", str(size), *(["--deflate"] * deflate)),
            servers=WEBSOCKET,
            app="asgi",
        )
        for name, size in (("125", 125), ("64k", 65536))
        for deflate in (0, 1)
    ),
    _case("tornado", "13 bytes from tornado", servers=("tricorn tornado -w 1", "tornado-web"), app="tornado"),
    _case("aiohttp", "13 bytes from aiohttp", servers=AIOHTTP, app="aiohttp"),
]
