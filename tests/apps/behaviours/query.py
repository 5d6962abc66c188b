"""Not a behaviour: how behaviours read their parameters."""

from __future__ import annotations

from typing import Any


def parameters(environ: dict[str, Any]) -> dict[str, str]:
    if not environ["QUERY_STRING"]:
        return {}
    from urllib.parse import parse_qsl

    return dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True, encoding="latin-1"))
