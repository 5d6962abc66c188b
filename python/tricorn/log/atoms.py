"""The atoms of an access log line: what is known of a request, under gunicorn's letters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tricorn._core import access_escape, access_object, basic_auth_user, request_id

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["RawAtoms", "SafeAtoms", "access_escape", "access_object", "basic_auth_user", "collect", "request_id"]

UNKNOWN = "-"
CLOCK = slice(13, 21)
"""The place of `01:02:32` in `[21/Nov/2026:01:02:32 +0000]`."""


class SafeAtoms(dict[str, Any]):
    """Made harmless for a line, as the native core does: a client cannot end the line or leave its quotes.

    An atom that is not there is `-`; the names in braces do not depend on case.
    """

    def __init__(self, atoms: Mapping[str, Any]) -> None:
        super().__init__(
            (name, access_escape(value) if isinstance(value, str) else value) for name, value in atoms.items()
        )

    def __getitem__(self, name: str) -> Any:
        return self.get(name.lower() if name.startswith("{") else name, UNKNOWN)


class RawAtoms(SafeAtoms):
    """Atoms for JSON, where the encoder does the escaping."""

    def __init__(self, atoms: Mapping[str, Any]) -> None:
        dict.__init__(self, atoms)


def collect(
    resp: Any, req: Any, environ: Mapping[str, Any], request_time: timedelta, now: str, user: str | None
) -> dict[str, Any]:
    """gunicorn's table. Durations count days too: theirs begin anew after 24 hours."""
    status = resp.status
    if isinstance(status, str):
        status = status.partition(" ")[0] or UNKNOWN
    sent = getattr(resp, "sent", None)
    seconds, micros = request_time.days * 86_400 + request_time.seconds, request_time.microseconds
    method, protocol = environ.get("REQUEST_METHOD"), environ.get("SERVER_PROTOCOL")
    atoms = {
        "h": environ.get("REMOTE_ADDR") or UNKNOWN,
        "l": UNKNOWN,
        "u": user or UNKNOWN,
        "t": now,
        "clock": now[CLOCK] or UNKNOWN,
        "r": f"{method} {environ.get('RAW_URI')} {protocol}",
        "s": status,
        "m": method,
        "U": environ.get("PATH_INFO"),
        "q": environ.get("QUERY_STRING"),
        "H": protocol,
        "b": UNKNOWN if sent is None else str(sent),
        "B": sent,
        "f": environ.get("HTTP_REFERER", UNKNOWN),
        "a": environ.get("HTTP_USER_AGENT", UNKNOWN),
        "T": seconds,
        "D": seconds * 1_000_000 + micros,
        "M": seconds * 1000 + micros // 1000,
        "L": f"{seconds}.{micros:06}",
        "p": f"<{os.getpid()}>",
    }
    for pairs, kind in [(getattr(req, "headers", req), "i"), (resp.headers, "o"), (environ, "e")]:
        named = pairs.items() if hasattr(pairs, "items") else pairs
        atoms.update((f"{{{name.lower()}}}{kind}", value) for name, value in named)
    return atoms
