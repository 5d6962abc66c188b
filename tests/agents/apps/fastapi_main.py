"""Two requests that succeed, and one that fails."""

from __future__ import annotations

import os
from importlib import import_module

from fastapi import FastAPI

sink = import_module(f"sinks.{os.environ['AGENT']}")
sink.prepare()
app = FastAPI()


@app.get("/")
async def hello() -> str:
    return "hello"


@app.get("/users/{number}")
async def user(number: int) -> str:
    return f"user {number}"


@app.get("/boom")
async def boom() -> str:
    raise ValueError("boom")


sink.instrument_fastapi(app)
