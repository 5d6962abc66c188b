"""The application for Flask."""

# Installed where the servers are measured, not where they are type-checked.
# mypy: disable-error-code="import-not-found,import-untyped"

from __future__ import annotations

import time

from flask import Flask, request

app = Flask(__name__)


@app.get("/constant")
def constant() -> str:
    return "constant\n"


@app.get("/json")
def document() -> dict[str, object]:
    return {"message": "Hello, World!", "items": [1, 2, 3]}


@app.get("/io")
def io_bound() -> str:
    time.sleep(1)
    return "slept for a second\n"


@app.get("/cpu")
def cpu_bound() -> str:
    return f"{sum(number * number for number in range(50_000))}\n"


@app.get("/blend")
def blend() -> str:
    """So many milliseconds of waiting, and of computing on a processor."""
    time.sleep(request.args.get("io", 0, int) / 1e3)
    until = time.thread_time() + request.args.get("cpu", 0, int) / 1e3
    while time.thread_time() < until:
        pass
    return "done\n"
