"""The sample application in Django, behind its ASGI handler, in one file."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator
from typing import Any

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    StreamingHttpResponse,
)
from django.urls import path
from notes import FILE, GATES, NOTES, digest, events, held, lines

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="only for tests",
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    LOGGING_CONFIG=None,
)
django.setup()


async def hello(request: HttpRequest, name: str) -> HttpResponse:
    return HttpResponse(f"Hello, {name}!", headers={"x-middleware": "yes"})


async def form(request: HttpRequest) -> HttpResponse:
    return JsonResponse(request.POST.dict())


async def upload(request: HttpRequest) -> HttpResponse:
    file: Any = request.FILES["file"]
    data = file.read()
    told = {"name": file.name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return JsonResponse({**told, "note": request.POST["note"]})


async def raw(request: HttpRequest) -> HttpResponse:
    async def pieces() -> AsyncIterator[bytes]:
        while piece := request.read(65536):
            yield piece

    return JsonResponse(await digest(pieces(), request.GET.get("tag", "")))


async def stream(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(lines(), content_type="text/plain")


async def sse(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(events(request.GET["tag"]), content_type="text/event-stream")


async def cookies(request: HttpRequest) -> HttpResponse:
    response = HttpResponse(request.COOKIES.get("seen", "never"))
    response.set_cookie("seen", "yes")
    response.set_cookie("other", "b")
    return response


async def file(request: HttpRequest) -> FileResponse:
    return FileResponse(FILE.open("rb"), content_type="application/octet-stream")


async def error(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("framework marker")


async def waits(request: HttpRequest) -> HttpResponse:
    """Django's documented way: the view is cancelled when the client leaves."""
    tag = request.GET["tag"]
    try:
        await held(tag)
    except asyncio.CancelledError:
        NOTES[tag].append("cancelled")
        raise
    return HttpResponse("never")


def in_a_thread(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(threading.current_thread() is not threading.main_thread()))


async def redirect(request: HttpRequest) -> HttpResponseRedirect:
    return HttpResponseRedirect("/hello/again")


async def notes(request: HttpRequest) -> JsonResponse:
    return JsonResponse(NOTES[request.GET["tag"]], safe=False)


async def go(request: HttpRequest) -> HttpResponse:
    GATES[request.GET["tag"]].set()
    return HttpResponse("gone")


urlpatterns = [
    path("hello/<str:name>", hello),
    path("form", form),
    path("upload", upload),
    path("raw", raw),
    path("stream", stream),
    path("events", sse),
    path("cookies", cookies),
    path("file", file),
    path("error", error),
    path("waits", waits),
    path("thread", in_a_thread),
    path("redirect", redirect),
    path("notes", notes),
    path("go", go),
]
application = get_asgi_application()
