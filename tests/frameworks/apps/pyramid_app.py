"""The sample application in Pyramid."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import FileResponse, Response

FILE = Path(__file__).with_name("file.bin")


def hello(request: Request) -> Response:
    return Response(f"Hello, {request.matchdict['name']}!")


def form(request: Request) -> dict[str, Any]:
    return dict(request.POST)


def upload(request: Request) -> dict[str, Any]:
    file = request.POST["file"]
    data = file.file.read()
    return {
        "name": file.filename,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "note": request.POST["note"],
    }


def stream(request: Request) -> Response:
    return Response(app_iter=(f"line {number}\n".encode() for number in range(100)), content_type="text/plain")


def cookies(request: Request) -> Response:
    response = Response(request.cookies.get("seen", "never"))
    response.set_cookie("seen", "yes")
    response.set_cookie("other", "b")
    return response


def file(request: Request) -> Response:
    return FileResponse(str(FILE), request=request, content_type="application/octet-stream")


def error(request: Request) -> Response:
    raise RuntimeError("framework marker")


def make() -> Any:
    with Configurator() as config:
        config.add_route("hello", "/hello/{name}")
        config.add_view(hello, route_name="hello")
        for view in (stream, cookies, file, error):
            config.add_route(view.__name__, f"/{view.__name__}")
            config.add_view(view, route_name=view.__name__)
        for view in (form, upload):
            config.add_route(view.__name__, f"/{view.__name__}")
            config.add_view(view, route_name=view.__name__, renderer="json", request_method="POST")
        return config.make_wsgi_app()


application = make()
