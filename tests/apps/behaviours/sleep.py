"""Takes `s` seconds of time and no processor."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    time.sleep(float(parameters(environ).get("s", "0.2")))
    body = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
