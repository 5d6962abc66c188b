"""Tells what the interpreter of the worker was started with, as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable
from typing import Any


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "application/json")])
    facts = {
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "path": sys.path,
        "cwd": os.getcwd(),
        "env": dict(os.environ),
        "main": sys.modules["__main__"].__spec__.name,
        "modules": sorted(sys.modules),
        "descriptors": sorted(map(int, os.listdir("/proc/self/fd"))),
        "signals": {number: str(signal.getsignal(number)) for number in (1, 2, 13, 15, 17)},
        "leads": os.getsid(0) == os.getppid(),
    }
    yield json.dumps(facts).encode()
