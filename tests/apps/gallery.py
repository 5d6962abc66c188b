"""Every fixture application behind one server: the first segment of the path names the behaviour.

All well-behaved ones run under `wsgiref.validate`, so that the server is held to PEP 3333 in every exchange; a
query parameter `raw` takes the validator away where it would hide what is tested (sendfile, `read()`).
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from wsgiref.validate import validator

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # also when the server was started elsewhere

BARE: dict[str, Any] = {}
CHECKED: dict[str, Any] = {}
for file in sorted((HERE / "behaviours").glob("*.py")):
    module = importlib.import_module(f"behaviours.{file.stem}")
    if hasattr(module, "application"):
        BARE[file.stem] = module.application
        breaks_rules = getattr(module, "BREAKS_RULES", False)
        CHECKED[file.stem] = module.application if breaks_rules else validator(module.application)

calls = 0
lock = threading.Lock()


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    global calls
    name = environ["PATH_INFO"].partition("/")[2].partition("/")[0]
    if name == "count":
        return _text(start_response, str(calls))
    if name == "pid":
        return _text(start_response, str(os.getpid()))
    with lock:
        calls += 1
    raw = "raw" in parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    # `OPTIONS *` has a path the validator does not know.
    table = BARE if raw or not name else CHECKED
    return table.get(name, table["hello"])(environ, start_response)


def _text(start_response: Any, text: str) -> list[bytes]:
    body = text.encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
