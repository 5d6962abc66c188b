"""Every fixture application behind one server: the first segment of the path names the behaviour.

All well-behaved ones run under `wsgiref.validate`, so that the server is held to PEP 3333 in every exchange; a
query parameter `raw` takes the validator away where it would hide what is tested (sendfile, `read()`).

Thousands of workers import it: modules that take long (pathlib, urllib.parse, hashlib, tempfile) are imported by the
requests that need them.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterable
from typing import Any
from wsgiref.validate import validator

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)  # also when the server was started elsewhere

from behaviours.query import parameters  # noqa: E402

BARE: dict[str, Any] = {}
CHECKED: dict[str, Any] = {}
for file in sorted(os.listdir(os.path.join(HERE, "behaviours"))):
    stem, extension = os.path.splitext(file)
    if extension != ".py":
        continue
    module = importlib.import_module(f"behaviours.{stem}")
    if hasattr(module, "application"):
        BARE[stem] = module.application
        breaks_rules = getattr(module, "BREAKS_RULES", False)
        CHECKED[stem] = module.application if breaks_rules else validator(module.application)

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
    raw = "raw" in parameters(environ)
    # `OPTIONS *` has a path the validator does not know.
    table = BARE if raw or not name else CHECKED
    return table.get(name, table["hello"])(environ, start_response)


def _text(start_response: Any, text: str) -> list[bytes]:
    body = text.encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
