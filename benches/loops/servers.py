"""The servers of event loops: one worker each, with the fastest parts that they offer. One record each."""

from __future__ import annotations

from benches.end_to_end.servers import ASGI, PEER, Command, Kind, kind

#: No server runs out of connections, and none is closed for having been silent while the others were opened.
PATIENT = "--worker-connections 20000 --keep-alive 600 --backlog 4096"
UVICORN = "uvicorn --loop uvloop --http httptools"
GRANIAN = "granian --workers 1 --http 1 --loop uvloop"
GUNICORN = "gunicorn asgi -w 1 --asgi-loop uvloop"


def script(module: str, *words: str) -> Command:
    """An application that starts its framework's own server."""
    return lambda application, port, access_log: [PEER, "-m", module, *words, str(port)]


ASGI_SERVERS = [
    kind("tricorn-asgi", "tricorn asgi -w 1", ASGI),
    kind("tricorn-asgi-asyncio", "tricorn asgi -w 1 --asgi-loop asyncio", ASGI),
    kind("uvicorn", UVICORN, ASGI),
    kind("granian", f"{GRANIAN} --no-ws", ASGI),
    kind("fastpysgi", "fastpysgi", ASGI),
    kind("gunicorn-asgi", GUNICORN, ASGI),
    kind("hypercorn", "hypercorn --worker-class uvloop", ASGI),
]

WEBSOCKET = [
    kind("tricorn-asgi", f"tricorn asgi -w 1 {PATIENT}", ASGI),
    kind("uvicorn", f"{UVICORN} --ws websockets", ASGI),
    kind("uvicorn-sansio", f"{UVICORN} --ws websockets-sansio", ASGI),
    kind("granian", f"{GRANIAN} --ws", ASGI),
    kind("gunicorn-asgi", f"{GUNICORN} {PATIENT}", ASGI),
]

SLEEPING = [
    kind("tricorn-asgi", f"tricorn asgi -w 1 {PATIENT}", ASGI),
    kind("uvicorn", f"{UVICORN} --timeout-keep-alive 600 --backlog 4096", ASGI),
    kind("granian", f"{GRANIAN} --no-ws --backlog 4096", ASGI),
    kind("fastpysgi", "fastpysgi", ASGI),
    kind("gunicorn-asgi", f"{GUNICORN} {PATIENT}", ASGI),
]

TORNADO = [
    kind("tricorn-tornado", "tricorn tornado -w 1"),
    Kind("tornado-httpserver", "tornado", script("benches.loops.tornado_app")),
]

AIOHTTP = [
    kind("tricorn-aiohttp", "tricorn aiohttp.GunicornWebWorker -w 1"),
    kind("tricorn-aiohttp-uvloop", "tricorn aiohttp.GunicornUVLoopWebWorker -w 1"),
    Kind("aiohttp-runner", "aiohttp", script("benches.loops.aiohttp_app", "asyncio")),
    Kind("aiohttp-runner-uvloop", "aiohttp", script("benches.loops.aiohttp_app", "uvloop")),
]
