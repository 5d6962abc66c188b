"""What is asked for over TLS, for WSGI and for ASGI: a hello, and 100 MiB, made in pieces or from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from benches.apps.asgi import Receive, Scope, Send, lifespan
from benches.harness.long_file import LENGTH, PATH, PIECE

HELLO = b"Hello, World!"
_PIECE = b"z" * PIECE


def wsgi(environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], Any]) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    length = len(HELLO) if path == "/" else LENGTH
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(length))])
    if path == "/":
        return [HELLO]
    if path == "/stream":
        return (_PIECE for _ in range(LENGTH // PIECE))
    wrapper = environ.get("wsgi.file_wrapper", in_pieces)
    wrapped: Iterable[bytes] = wrapper(PATH.open("rb"), PIECE)
    return wrapped


def in_pieces(file: BinaryIO, length: int) -> Iterator[bytes]:
    """For servers that send no files (PEP 3333, "Optional Platform-Specific File Handling")."""
    with file:
        while piece := file.read(length):
            yield piece


async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    path = scope["path"]
    length = len(HELLO) if path == "/" else LENGTH
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if path == "/":
        await send({"type": "http.response.body", "body": HELLO})
        return
    for number in range(1, LENGTH // PIECE + 1):
        await send({"type": "http.response.body", "body": _PIECE, "more_body": number < LENGTH // PIECE})
