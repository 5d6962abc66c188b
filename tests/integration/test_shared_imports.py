"""Modules in a worker: those that its application's framework needs are the arbiter's, which workers share."""

from __future__ import annotations

import json

import pytest
from tricorn.workers import shared_imports

from tests.harness import Site

pytestmark = pytest.mark.beyond_reference("it says which of tricorn's modules are where")

CONFIGURATION = """\
import sys

def post_fork(server, worker):
    sys.modules_of_arbiter = sorted(sys.modules)
"""

SEEN = 'json.dumps({"before": sys.modules_of_arbiter, "now": sorted(sys.modules)})'

APPLICATIONS = {
    "hello": f"""\
import json, sys

def app(environ, start_response):
    start_response("200 OK", [])
    return [{SEEN}.encode()]
""",
    "flask": f"""\
import json, sys
from flask import Flask

app = Flask(__name__)
app.add_url_rule("/", view_func=lambda: {SEEN})
""",
    "fastapi": f"""\
import json, sys
from fastapi import FastAPI
from starlette.responses import PlainTextResponse

app = FastAPI()

@app.get("/")
async def index():
    return PlainTextResponse({SEEN})
""",
}

TOOLS = ("bench", "contrib", "doctor", "load", "self_signed", "testing", "top")


def modules(application: str, worker_class: str) -> tuple[set[str], set[str]]:
    """Returns the arbiter's modules before the fork, and those that the worker has imported since."""
    files = {"mine.py": APPLICATIONS[application]}
    configuration = f"worker_class = {worker_class!r}\n{CONFIGURATION}"
    with Site(configuration, app="mine:app", files=files, fresh=True) as server:
        seen = json.loads(server.get("/").body)
    return set(seen["before"]), set(seen["now"]) - set(seen["before"])


@pytest.mark.parametrize(
    ("application", "worker_class"),
    [
        ("hello", "auto"),
        ("hello", "sync"),
        ("flask", "auto"),
        ("flask", "gthread"),
        ("flask", "gevent"),
        ("fastapi", "auto"),
        ("fastapi", "asgi"),
    ],
)
def test_the_servers_own_modules_are_imported_before_the_fork(application: str, worker_class: str) -> None:
    before, since = modules(application, worker_class)
    assert {name for name in since if name.partition(".")[0] in ("tricorn", "asyncio", "uvloop")} <= CLASS_OF_HELLO
    assert not [name for name in before | since if name.startswith(tuple(f"tricorn.{tool}" for tool in TOOLS))]


CLASS_OF_HELLO = {"tricorn.workers.sync"}
"""The class that `auto` takes for an application whose source shows nothing."""


@pytest.mark.parametrize(("application", "worker_class"), [("flask", "auto"), ("fastapi", "asgi")])
def test_so_are_standard_modules_that_frameworks_import(application: str, worker_class: str) -> None:
    before, _ = modules(application, worker_class)
    assert set(shared_imports.COMMON) <= before


def test_modules_that_keep_what_gevent_patches_are_left_to_the_workers() -> None:
    before, since = modules("flask", "gevent")
    assert set(shared_imports.CALCULATING) <= before
    assert "tempfile" in since, "it has a lock"


def test_an_application_without_imports_is_served_without_them() -> None:
    before, since = modules("hello", "auto")
    assert not {"ssl", "http.client", "email.message"} & (before | since)


def test_a_module_of_the_users_with_a_standard_name_is_imported_by_the_workers() -> None:
    """Else a reload would not see that it has changed."""
    files = {
        "mine.py": APPLICATIONS["flask"].replace("import json, sys", "import json, sys, calendar"),
        "calendar.py": "",
    }
    with Site(CONFIGURATION, app="mine:app", files=files, fresh=True) as server:
        seen = json.loads(server.get("/").body)
        assert "calendar" in set(seen["now"]) - set(seen["before"])
