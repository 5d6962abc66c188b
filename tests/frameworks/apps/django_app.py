"""The sample application in Django, in one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path

FILE = Path(__file__).with_name("file.bin")

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="only for tests",
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    LOGGING_CONFIG=None,
)
django.setup()


def hello(request: HttpRequest, name: str) -> HttpResponse:
    return HttpResponse(f"Hello, {name}!")


def form(request: HttpRequest) -> HttpResponse:
    return JsonResponse(request.POST.dict())


def upload(request: HttpRequest) -> HttpResponse:
    file = request.FILES["file"]
    data = file.read()
    return JsonResponse(
        {
            "name": file.name,
            "size": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "note": request.POST["note"],
        }
    )


def stream(request: HttpRequest) -> StreamingHttpResponse:
    def lines() -> Iterator[str]:
        for number in range(100):
            yield f"line {number}\n"

    return StreamingHttpResponse(lines(), content_type="text/plain")


def cookies(request: HttpRequest) -> HttpResponse:
    response = HttpResponse(request.COOKIES.get("seen", "never"))
    response.set_cookie("seen", "yes")
    response.set_cookie("other", "b")
    return response


def file(request: HttpRequest) -> FileResponse:
    return FileResponse(FILE.open("rb"), content_type="application/octet-stream")


def error(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("framework marker")


urlpatterns = [
    path("hello/<str:name>", hello),
    path("form", form),
    path("upload", upload),
    path("stream", stream),
    path("cookies", cookies),
    path("file", file),
    path("error", error),
]
application = get_wsgi_application()
