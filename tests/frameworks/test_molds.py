"""Frameworks in a mold: a reload under load renews the code, and no request is lost."""

from __future__ import annotations

import pytest

from tests.harness import Load
from tests.harness.load import CLOSE
from tests.harness.molds import Molded

DJANGO = """\
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
import django

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="x",
                   INSTALLED_APPS=["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
                                   "django.contrib.messages", "django.contrib.sessions"],
                   DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
django.setup()
urlpatterns = [path("", lambda request: HttpResponse("VERSION"))]
application = get_wsgi_application()
"""

FASTAPI = """\
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

application = FastAPI()


class Item(BaseModel):
    name: str = "VERSION"


@application.get("/", response_class=PlainTextResponse)
async def root() -> str:
    return Item().name
"""

FLASK = """\
import os

from flask import Flask
from sqlalchemy import create_engine, text

application = Flask(__name__)
engine = create_engine("sqlite:///" + os.path.join(os.path.dirname(__file__), "database"))
with engine.begin() as connection:
    connection.execute(text("create table if not exists versions (name text)"))
table = {number: str(number) for number in range(100_000)}


@application.route("/")
def root():
    with engine.begin() as connection:
        return connection.execute(text("select 'VERSION'")).scalar_one()
"""

APPS = {"django": ("sync", DJANGO), "fastapi": ("asgi", FASTAPI), "flask": ("gthread", FLASK)}


@pytest.mark.parametrize("name", APPS)
def test_a_reload_renews_the_code_and_loses_nothing(name: str) -> None:
    pytest.importorskip(name)
    worker_class, text = APPS[name]
    files = {"mine.py": text.replace("VERSION", "version 0")}
    config = f"worker_class = {worker_class!r}\nworkers = 2\n"
    with (
        Molded(config, app="mine:application", workers=2, files=files) as server,
        Load(server.address, "/", clients=4, fields=CLOSE) as load,
    ):
        load.settle(20)
        for version in (1, 2):
            server.write("mine.py", text.replace("VERSION", f"version {version}"))
            server.hup_molded(2)
            load.settle(20)
            assert {server.get("/").body for _ in range(5)} == {f"version {version}".encode()}
        tally = load.stop()
    assert tally.failures == []
