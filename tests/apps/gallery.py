"""Every fixture application behind one server: the first segment of the path names the behaviour.

All well-behaved ones run under `wsgiref.validate`, so that the server is held to PEP 3333 in every exchange; a
query parameter `raw` takes the validator away where it would hide what is tested (sendfile, `read()`).

Thousands of workers import it, and most serve one behaviour or two: the first request for a behaviour imports it, and
what takes long (pathlib, urllib.parse, hashlib, tempfile).
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
ROOM = os.path.join(HERE, "behaviours")
sys.path.insert(0, HERE)  # also when the server was started elsewhere

from behaviours.query import parameters  # noqa: E402

NAMES = {file.removesuffix(".py") for file in os.listdir(ROOM) if file.endswith(".py")} - {"query"}


class Table(dict[str, Any]):
    """The applications of the behaviours, by name; those of them that keep the rules may be `checked`."""

    def __init__(self, checked: bool) -> None:
        super().__init__()
        self._checked = checked

    def __missing__(self, name: str) -> Any:
        if name not in NAMES:
            return self["hello"]
        module = importlib.import_module(f"behaviours.{name}")
        checked = self._checked and not getattr(module, "BREAKS_RULES", False)
        return self.setdefault(name, validator(module.application) if checked else module.application)


BARE, CHECKED = Table(False), Table(True)
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
    return table[name](environ, start_response)


def _text(start_response: Any, text: str) -> list[bytes]:
    body = text.encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
