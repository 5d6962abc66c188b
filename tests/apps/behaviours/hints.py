"""103 Early Hints before the response; `late` tries once more after it has begun."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = parameters(environ)
    hint = environ["wsgi.early_hints"]
    for number in range(int(given.get("count", "1"))):
        hint([("Link", f"</{number}.css>; rel=preload"), ("X-Hint", "yes")])
    if "bad" in given:
        hint([("Link", "a\r\nX-Injected: yes")])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [b"body"]
