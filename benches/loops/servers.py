"""The servers of event loops: one worker each, with the fastest parts that they offer. One record each."""

from __future__ import annotations

from benches.end_to_end.servers import PEER, Command, Kind, launched, like_gunicorn, tricorn

#: No server runs out of connections, and none is closed for having been silent while the others were opened.
PATIENT = ("--worker-connections", "20000", "--keep-alive", "600", "--backlog", "4096")


def uvicorn(*options: str) -> Command:
    def command(application: str, port: int, access_log: str | None) -> list[str]:
        words = [PEER, "-m", "uvicorn", "--host", "127.0.0.1", "--port", str(port), "--loop", "uvloop"]
        words += ["--http", "httptools", "--no-access-log", "--log-level", "warning"]
        return [*words, *options, application]

    return command


def granian(*options: str) -> Command:
    def command(application: str, port: int, access_log: str | None) -> list[str]:
        words = [PEER, "-m", "granian", "--interface", "asgi", "--host", "127.0.0.1", "--port", str(port)]
        words += ["--workers", "1", "--http", "1", "--loop", "uvloop", "--backpressure", "20000"]
        return [*words, *options, application]

    return command


def hypercorn(application: str, port: int, access_log: str | None) -> list[str]:
    return [PEER, "-m", "hypercorn", "--bind", f"127.0.0.1:{port}", "--worker-class", "uvloop", application]


def script(module: str, *words: str) -> Command:
    """An application that starts its framework's own server."""
    return lambda application, port, access_log: [PEER, "-m", module, *words, str(port)]


ASGI = [
    Kind("tricorn-asgi", "tricorn", tricorn("-k", "asgi")),
    Kind("tricorn-asgi-asyncio", "tricorn", tricorn("-k", "asgi", "--asgi-loop", "asyncio")),
    Kind("uvicorn", "uvicorn", uvicorn()),
    Kind("granian", "granian", granian("--no-ws")),
    Kind("fastpysgi", "fastpysgi", launched("fastpysgi")),
    Kind("gunicorn-asgi", "gunicorn", like_gunicorn("gunicorn", "-k", "asgi", "--asgi-loop", "uvloop")),
    Kind("hypercorn", "hypercorn", hypercorn),
]

WEBSOCKET = [
    Kind("tricorn-asgi", "tricorn", tricorn("-k", "asgi", *PATIENT)),
    Kind("uvicorn", "uvicorn", uvicorn("--ws", "websockets")),
    Kind("uvicorn-sansio", "uvicorn", uvicorn("--ws", "websockets-sansio")),
    Kind("granian", "granian", granian("--ws")),
    Kind("gunicorn-asgi", "gunicorn", like_gunicorn("gunicorn", "-k", "asgi", "--asgi-loop", "uvloop", *PATIENT)),
]

SLEEPING = [
    Kind("tricorn-asgi", "tricorn", tricorn("-k", "asgi", *PATIENT)),
    Kind("uvicorn", "uvicorn", uvicorn("--timeout-keep-alive", "600", "--backlog", "4096")),
    Kind("granian", "granian", granian("--no-ws", "--backlog", "4096")),
    Kind("fastpysgi", "fastpysgi", launched("fastpysgi")),
    Kind("gunicorn-asgi", "gunicorn", like_gunicorn("gunicorn", "-k", "asgi", "--asgi-loop", "uvloop", *PATIENT)),
]

TORNADO = [
    Kind("tricorn-tornado", "tricorn", tricorn("-k", "tornado")),
    Kind("tornado-httpserver", "tornado", script("benches.loops.tornado_app")),
]

AIOHTTP = [
    Kind("tricorn-aiohttp", "tricorn", tricorn("-k", "aiohttp.GunicornWebWorker")),
    Kind("tricorn-aiohttp-uvloop", "tricorn", tricorn("-k", "aiohttp.GunicornUVLoopWebWorker")),
    Kind("aiohttp-runner", "aiohttp", script("benches.loops.aiohttp_app", "asyncio")),
    Kind("aiohttp-runner-uvloop", "aiohttp", script("benches.loops.aiohttp_app", "uvloop")),
]
