"""What is served with `reload` while the application cannot be loaded: its traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def make_stand_in(traceback: str) -> Callable[..., Iterable[bytes]]:
    """A WSGI application that answers every request with 500 and the text, as gunicorn does."""
    body = traceback.encode("utf-8", "replace")

    def stand_in(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        start_response("500 Internal Server Error", headers)
        return [body]

    return stand_in
