"""Says which process answers; `/reinit` has the event loop wait in another epoll from then on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from gevent import get_hub


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/reinit":
        get_hub().loop.reinit()
    body = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
