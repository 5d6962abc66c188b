"""The sample application in Flask."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from flask import Flask, Response, jsonify, make_response, request, send_file

app = application = Flask(__name__)
FILE = Path(__file__).with_name("file.bin")


@app.get("/hello/<name>")
def hello(name: str) -> str:
    return f"Hello, {name}!"


@app.post("/form")
def form() -> Response:
    return jsonify(request.form.to_dict())


@app.post("/upload")
def upload() -> Response:
    file = request.files["file"]
    data = file.read()
    return jsonify(
        name=file.filename, size=len(data), sha256=hashlib.sha256(data).hexdigest(), note=request.form["note"]
    )


@app.get("/stream")
def stream() -> Response:
    def lines() -> Iterator[str]:
        for number in range(100):
            yield f"line {number}\n"

    return Response(lines(), mimetype="text/plain")


@app.get("/cookies")
def cookies() -> Response:
    response = make_response(request.cookies.get("seen", "never"))
    response.set_cookie("seen", "yes")
    response.set_cookie("other", "b")
    return response


@app.get("/file")
def file() -> Response:
    return send_file(FILE, mimetype="application/octet-stream")


@app.get("/error")
def error() -> str:
    raise RuntimeError("framework marker")
