"""Says whether the name of a header field is the object that it was in the request before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

LAST: list[object] = []


def answer(name: object) -> bytes:
    """A name that is made anew has another address: the one before is held."""
    is_same = bool(LAST) and LAST[0] is name
    LAST[:] = [name]
    return b"same" if is_same else b"new"


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = answer(next((key for key in environ if key == "HTTP_X_SAME"), None))
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
