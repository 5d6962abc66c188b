"""Says things as tests/apps/logging_app.py does, for event loops: `/print`, `/logging`, `/raise`, `/pid`."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from asgi.plain import answering


def said(scope: dict[str, Any]) -> bytes:
    what, text = scope["path"].strip("/"), scope["query_string"].decode()
    if what == "print":
        print(text, "printed", flush=True)
        print(text, "to stderr", file=sys.stderr, flush=True)
        os.write(1, f"{text} by C\n".encode())
    elif what == "logging":
        logging.getLogger("gunicorn.error").info("%s by logging", text)
    elif what == "raise":
        raise ValueError(text)
    return dict(scope["headers"]).get(b"x-from-hook", b"%d" % os.getpid())


application = answering(said, (b"x-answer", b"yes"))
