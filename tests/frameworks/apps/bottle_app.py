"""The sample application in Bottle."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bottle import Bottle, request, response, static_file

app = application = Bottle()
FILE = Path(__file__).with_name("file.bin")


@app.get("/hello/<name>")
def hello(name: str) -> str:
    return f"Hello, {name}!"


@app.post("/form")
def form() -> dict[str, str]:
    return dict(request.forms)


@app.post("/upload")
def upload() -> dict[str, Any]:
    file = request.files["file"]
    data = file.file.read()
    return {
        "name": file.raw_filename,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "note": request.forms["note"],
    }


@app.get("/stream")
def stream() -> Iterator[str]:
    response.content_type = "text/plain"
    for number in range(100):
        yield f"line {number}\n"


@app.get("/cookies")
def cookies() -> str:
    response.set_cookie("seen", "yes")
    response.set_cookie("other", "b")
    return request.get_cookie("seen") or "never"


@app.get("/file")
def file() -> Any:
    return static_file(FILE.name, root=FILE.parent, mimetype="application/octet-stream")


@app.get("/error")
def error() -> str:
    raise RuntimeError("framework marker")
