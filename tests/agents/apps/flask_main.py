"""Two requests that succeed, and one that fails."""

from __future__ import annotations

import os
from importlib import import_module

from flask import Flask

sink = import_module(f"sinks.{os.environ['AGENT']}")
sink.prepare()
app = Flask(__name__)


@app.get("/")
def hello() -> str:
    return "hello"


@app.get("/users/<int:number>")
def user(number: int) -> str:
    return f"user {number}"


@app.get("/boom")
def boom() -> str:
    raise ValueError("boom")


sink.instrument_flask(app)
