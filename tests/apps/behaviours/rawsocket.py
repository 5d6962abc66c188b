"""gunicorn.socket: what websocket libraries take over; here it only tells what it is connected to."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from typing import Any


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    sock = environ["gunicorn.socket"]
    facts = {
        "peer": sock.getpeername(),
        "local": sock.getsockname(),
        "is_socket": stat.S_ISSOCK(os.fstat(sock.fileno()).st_mode),
        "family": int(sock.family),
    }
    body = json.dumps(facts).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
