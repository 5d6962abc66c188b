"""NiceGUI by `ui.run`, as its quickstart has it."""

from __future__ import annotations

import sys

import pages  # noqa: F401
from nicegui import app, ui


@app.get("/api/answer")
def answer() -> dict[str, int]:
    return {"answer": 42}


ui.run(port=int(sys.argv[1]), reload=False, show=False, storage_secret="for a cookie")
