"""NiceGUI on FastAPI by `ui.run_with`."""

from __future__ import annotations

import pages  # noqa: F401
from fastapi import FastAPI
from nicegui import ui

app = FastAPI()


@app.get("/api/answer")
def answer() -> dict[str, int]:
    return {"answer": 42}


ui.run_with(app, storage_secret="for a cookie")
