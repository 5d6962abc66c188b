"""A small Flask application: a page, JSON, a form and a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator

from flask import Flask, Response, jsonify, request

app = Flask(__name__)


@app.get("/")
def hello() -> str:
    return "Hello from Flask on tricorn!\n"


@app.get("/worker")
def worker() -> Response:
    """Ask several times: the answers come from different worker processes."""
    return jsonify(pid=os.getpid(), server=request.environ["SERVER_SOFTWARE"])


@app.post("/shout")
def shout() -> str:
    return request.form.get("text", "").upper() + "\n"


@app.get("/countdown")
def countdown() -> Response:
    def lines() -> Iterator[str]:
        for number in range(5, 0, -1):
            yield f"{number}\n"

    return Response(lines(), mimetype="text/plain")
