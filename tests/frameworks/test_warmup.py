"""Frameworks answer targets of `warmup` in a mold: it can be forked afterwards, and workers have what was filled."""

from __future__ import annotations

import pytest

from tests.harness import Site
from tests.harness.molds import Molded

DJANGO = """\
import os

from django.conf import settings
from django.db import connection
from django.http import HttpResponse
from django.urls import path
import django

settings.configure(ALLOWED_HOSTS=["shop.example", "t"], ROOT_URLCONF=__name__, SECRET_KEY="x",
                   MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
                   DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite"}})
django.setup()
FILLED = []


def root(request):
    with connection.cursor() as cursor:
        cursor.execute("select 1")
    FILLED.append(f"{os.getpid()} {request.build_absolute_uri()}")
    return HttpResponse("\\n".join(FILLED))


urlpatterns = [path("", root)]
"""

DJANGO_WSGI = f"from django.core.wsgi import get_wsgi_application\n{DJANGO}\napplication = get_wsgi_application()\n"
DJANGO_ASGI = f"from django.core.asgi import get_asgi_application\n{DJANGO}\napplication = get_asgi_application()\n"

FASTAPI = """\
import os
from contextlib import asynccontextmanager

from fastapi import BackgroundTasks, FastAPI, Request
from fastapi.responses import PlainTextResponse

FILLED = []


@asynccontextmanager
async def lifespan(app):
    yield {"began": os.getpid()}


application = FastAPI(lifespan=lifespan)


@application.get("/", response_class=PlainTextResponse)
def root(request: Request, background: BackgroundTasks) -> str:
    assert request.state.began == os.getpid()
    background.add_task(int)
    FILLED.append(f"{os.getpid()} {request.url}")
    return "\\n".join(FILLED)
"""

FLASK = """\
import os

from flask import Flask, request

application = Flask(__name__)
FILLED = []


@application.route("/")
def root():
    FILLED.append(f"{os.getpid()} {request.url}")
    return "\\n".join(FILLED)
"""

APPS = {
    "django": ("sync", DJANGO_WSGI),
    "django.asgi": ("asgi", DJANGO_ASGI),
    "fastapi": ("asgi", FASTAPI),
    "flask": ("gthread", FLASK),
}


@pytest.mark.parametrize("kind", [Site, Molded])
@pytest.mark.parametrize("name", APPS)
def test_a_framework_answers_before_the_workers_serve(name: str, kind: type[Site]) -> None:
    pytest.importorskip(name.partition(".")[0])
    worker_class, text = APPS[name]
    config = f"worker_class = {worker_class!r}\nwarmup = ['https://shop.example/']\nloglevel = 'debug'\n"
    with kind(config, app="mine:application", files={"mine.py": text}) as server:
        filled = server.get("/").body.decode().splitlines()
        by = server.mold_pid() if isinstance(server, Molded) else server.worker_pid()
        assert filled[0] == f"{by} https://shop.example/"
        assert filled[1].split()[0] == str(server.worker_pid())
        assert len(filled) == 2
        server.log.wait("Warm-up: https://shop.example/ answered 200")
