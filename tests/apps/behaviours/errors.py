"""wsgi.errors: text for the error log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    text = parameters(environ)["text"]
    errors = environ["wsgi.errors"]
    errors.write(f"write {text}\n")
    errors.writelines([f"lines {text}\n", "\u00fc\u20ac\n"])
    errors.flush()
    print("print", text, file=errors)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "0")])
    return []
