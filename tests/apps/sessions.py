"""An application whose sessions are in the memory of its process.

`/new` begins one and tells its name in the field X-Session. A request that brings the name counts in that session; one
that brings an unknown name gets 404, and one without a name 200. Bodies are JSON, with the pid. `?gate=` waits until
that file exists, and `?s=` sleeps for so many seconds.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

SESSIONS: dict[str, int] = {}
LOCK = threading.Lock()
STATUS = {200: "200 OK", 404: "404 Not Found"}


def answer(path: str, name: str) -> tuple[int, dict[str, str], bytes]:
    """The status, the fields and the body."""
    with LOCK:
        if path == "/new":
            name = uuid.uuid4().hex
            SESSIONS[name] = 0
        elif name in SESSIONS:
            SESSIONS[name] += 1
        status = 404 if name and name not in SESSIONS else 200
        body = json.dumps({"pid": os.getpid(), "count": SESSIONS.get(name)}).encode()
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    return status, {**fields, "X-Session": name} if path == "/new" else fields, body


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = dict(parse_qsl(environ["QUERY_STRING"]))
    environ["wsgi.input"].read()
    time.sleep(float(given.get("s", 0)))
    while "gate" in given and not os.path.exists(given["gate"]):
        time.sleep(0.005)
    status, fields, body = answer(environ["PATH_INFO"], environ.get("HTTP_X_SESSION", ""))
    start_response(STATUS[status], list(fields.items()))
    return [body]
