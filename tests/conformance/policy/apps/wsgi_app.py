"""What every application of this room does, for WSGI. The path is `/behaviour/tag`.

What an application notices it tells on stderr.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

PIECE = bytes(65536)
PIECES = 200


class Request:
    def __init__(self, environ: dict[str, Any], start_response: Any) -> None:
        self.environ, self.start_response = environ, start_response
        _, self.name, self.tag = environ["PATH_INFO"].split("/")
        self.gate = environ["QUERY_STRING"]

    def tell(self, *words: object) -> None:
        sys.stderr.write(f"told {self.tag} {' '.join(map(str, words))}\n")

    def start(self, length: int | None = None) -> None:
        fields = [("Content-Type", "text/plain"), ("X-Policy", "one")]
        if length is not None:
            fields.append(("Content-Length", str(length)))
        self.start_response("200 OK", fields)

    def wait(self) -> None:
        """Until the test opens the gate."""
        self.tell("in")
        while not os.path.exists(self.gate):
            time.sleep(0.005)

    def read(self) -> int:
        try:
            count = len(self.environ["wsgi.input"].read())
        except OSError as error:
            self.tell("lost", type(error).__name__)
            raise
        self.tell("read", count)
        return count


def answer(request: Request, text: str) -> list[bytes]:
    request.start(len(text))
    return [text.encode()]


def hello(request: Request) -> Iterable[bytes]:
    return answer(request, "Hello")


def body(request: Request) -> Iterable[bytes]:
    request.tell("in")
    return answer(request, str(request.read()))


def later(request: Request) -> Iterator[bytes]:
    """Reads its body when its response has begun."""
    request.start()
    yield b"begun"
    yield str(request.read()).encode()


def asks_late(request: Request) -> Iterable[bytes]:
    request.wait()
    return answer(request, str(request.read()))


def works(request: Request) -> Iterable[bytes]:
    request.wait()
    return answer(request, "worked")


def begins(request: Request) -> Iterator[bytes]:
    request.start()
    yield b"begun"
    request.wait()
    yield b"worked"


def pours(request: Request) -> Iterator[bytes]:
    request.start()
    request.tell("in")
    count = 0
    try:
        for _ in range(PIECES):
            yield PIECE
            count += 1
        request.tell("poured")
    except BaseException as error:
        request.tell("stopped", count, type(error).__name__)
        raise


def blob(request: Request) -> Iterable[bytes]:
    request.start(len(PIECE) * PIECES)
    return [PIECE * PIECES]


def raises(request: Request) -> Iterable[bytes]:
    raise RuntimeError(f"policy marker {request.tag}")


def raises_late(request: Request) -> Iterator[bytes]:
    request.start()
    yield b"begun"
    raise RuntimeError(f"policy marker {request.tag}")


def short(request: Request) -> Iterable[bytes]:
    request.start(10)
    return [b"1234"]


BEHAVIOURS: dict[str, Callable[[Request], Iterable[bytes]]] = {
    "hello": hello,
    "body": body,
    "refused-by-hook": body,
    "later": later,
    "asks-late": asks_late,
    "works": works,
    "begins": begins,
    "pours": pours,
    "blob": blob,
    "raises": raises,
    "raises-late": raises_late,
    "short": short,
}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    request = Request(environ, start_response)
    return BEHAVIOURS[request.name](request)
