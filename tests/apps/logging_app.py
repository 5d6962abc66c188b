"""Says things in every way an application can: `/print`, `/errors` (wsgi.errors), `/logging`, `/raise`, `/pid`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    what = environ["PATH_INFO"].strip("/")
    text = environ["QUERY_STRING"]
    if what == "print":
        # Each in one piece: a line of the server's may come at any time.
        print(f"{text} printed\n", end="", flush=True)
        sys.stderr.write(f"{text} to stderr\n")
        sys.stderr.flush()
        os.write(1, f"{text} by C\n".encode())
    elif what == "errors":
        environ["wsgi.errors"].write(f"{text} to wsgi.errors\nin two lines\n")
        environ["wsgi.errors"].flush()
    elif what == "logging":
        logging.getLogger("gunicorn.error").info("%s by logging", text)
    elif what == "raise":
        raise ValueError(text)
    body = environ.get("HTTP_X_FROM_HOOK", str(os.getpid())).encode()
    start_response("200 OK", [("Content-Length", str(len(body))), ("X-Answer", "yes")])
    return [body]
