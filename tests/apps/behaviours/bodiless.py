"""Statuses that forbid a body, with and without an application that sends one anyway."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters

BREAKS_RULES = True


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = parameters(environ)
    body = [b"x" * int(given.get("sends", "0"))]
    fields = [("X-Kept", "yes")]
    if "says" in given:
        fields.append(("Content-Length", given["says"]))
    start_response(given.get("status", "204 No Content"), fields)
    return iter(body) if "generator" in given else body
