"""Where a sink writes what an agent would send: a line of JSON for each piece."""

from __future__ import annotations

import json
import os

_file = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(**what: object) -> None:
    os.write(_file, json.dumps(what, sort_keys=True, default=str).encode() + b"\n")
