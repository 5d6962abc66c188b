"""Frameworks in a mold: under load a reload renews the code, a worker becomes the mold, and no request is lost."""

from __future__ import annotations

import json

import pytest

from tests.harness import Load, Reply, until
from tests.harness.load import CLOSE
from tests.harness.molds import RENEWED, Molded
from tests.harness.postgres import Postgres, postgres  # noqa: F401 (a fixture)

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


QUERY = "SELECT pg_backend_pid(), count(*), %s::int FROM generate_series(1, 100)"

DJANGO_DATABASE = """\
import os

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import JsonResponse
from django.urls import path

words = DATABASE
settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="x",
                   DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": words["dbname"],
                                          "USER": words["user"], "HOST": words["host"], "PORT": words["port"],
                                          "CONN_MAX_AGE": None}})
django.setup()
learned = []


def root(request):
    with connection.cursor() as cursor:
        cursor.execute(QUERY, [os.getpid()])
        session, hundred, pid = cursor.fetchone()
    learned.append(pid)
    return JsonResponse({"session": session, "hundred": hundred, "pid": pid, "first": learned[0]})


urlpatterns = [path("", root)]
application = get_wsgi_application()
"""

FLASK_DATABASE = """\
import os

from flask import Flask
from sqlalchemy import create_engine

words = DATABASE
application = Flask(__name__)
engine = create_engine("postgresql+psycopg://", connect_args=words, pool_size=4)
learned = []


@application.route("/")
def root():
    with engine.begin() as connection:
        session, hundred, pid = connection.exec_driver_sql(QUERY, (os.getpid(),)).one()
    learned.append(pid)
    return {"session": session, "hundred": hundred, "pid": pid, "first": learned[0]}
"""

ON_DATABASES = {"django": DJANGO_DATABASE, "flask": FLASK_DATABASE}


def is_right(reply: Reply) -> bool:
    return reply.status == 200 and json.loads(reply.body)["hundred"] == 100


@pytest.mark.parametrize("worker_class", ["sync", "gthread"])
@pytest.mark.parametrize("name", ON_DATABASES)
def test_connections_to_a_database_are_not_shared_by_forks_of_a_worker(
    name: str,
    worker_class: str,
    postgres: Postgres,  # noqa: F811
) -> None:
    pytest.importorskip(name)
    words = dict(word.split("=", 1) for word in postgres.dsn().split())
    text = ON_DATABASES[name].replace("DATABASE", repr(words), 1).replace("QUERY", repr(QUERY))
    config = f"worker_class = {worker_class!r}\nthreads = 2\nworkers = 3\nrefork = 20\n"
    with (
        Molded(config, app="mine:application", workers=3, files={"mine.py": text}) as server,
        Load(server.address, "/", clients=4, check=is_right, fields=CLOSE) as load,
    ):
        load.settle(20)
        server.log.wait("is the mold now")
        server.log.wait("Refork after 20 requests")
        (mold,) = [int(found[1]) for found in server.log.matching(RENEWED)]
        seen: dict[int, set[int]] = {}

        def all_answer() -> bool:
            answer = json.loads(server.get("/").body)
            assert answer["first"] == mold, "what it had learned is in all of its forks"
            seen.setdefault(answer["session"], set()).add(answer["pid"])
            return len({pid for pids in seen.values() for pid in pids}) >= 2

        until(all_answer, "several workers answer")
        assert all(len(pids) == 1 for pids in seen.values()), f"no session has two workers: {seen}"
        tally = load.stop()
    assert tally.failures == []
