"""How many greenlets there are in the worker, and how many requests with a body the application was called for."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable
from typing import Any

import greenlet

uploads = 0


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    global uploads
    if environ["REQUEST_METHOD"] == "POST":
        uploads += 1
    gc.collect()
    greenlets = sum(isinstance(each, greenlet.greenlet) for each in gc.get_objects())
    body = json.dumps({"greenlets": greenlets, "uploads": uploads}).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
