"""Response fields as given in the query, in order: `status` sets the status line, everything else is a field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    from urllib.parse import parse_qsl

    status, as_lists = "200 OK", False
    fields = [("Content-Type", "text/plain")]
    for name, value in parse_qsl(environ["QUERY_STRING"], keep_blank_values=True, encoding="latin-1"):
        if name == "status":
            status = value
        elif name == "as_lists":
            as_lists = True
        elif name != "raw":
            fields.append((name, value))
    start_response(status, [list(field) for field in fields] if as_lists else fields)
    return [b"body"]
