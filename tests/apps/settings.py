"""Tells what the command line made of its process: directory, environment, import path."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Any


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    facts = {
        "cwd": os.getcwd(),
        "env": {name: os.environ.get(name) for name in ("TRICORN_A", "TRICORN_B")},
        "path": sys.path,
        "file": __file__,
    }
    body = json.dumps(facts).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def create(greeting: str = "none", *, loud: bool = False) -> Any:
    """An application factory, for command lines like `settings:create("hi", loud=True)`."""

    def made(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = (greeting.upper() if loud else greeting).encode()
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]

    return made


not_callable = 5
