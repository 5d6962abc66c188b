"""`manage.py runserver` with `tricorn.contrib.django` in INSTALLED_APPS."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, until
from tests.harness.needs import needs
from tests.harness.site import replaced

needs("django")
pytestmark = pytest.mark.beyond_reference("it has no such command")

FILES = {
    "manage.py": """\
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
""",
    "project/__init__.py": "",
    "project/settings.py": """\
from pathlib import Path
BASE_DIR = Path(__file__).parent.parent
DEBUG = True
SECRET_KEY = "only for tests"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "project.urls"
INSTALLED_APPS = [THE_APPS]
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "assets"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": [BASE_DIR / "templates"]}]
MORE
""",
    "project/urls.py": """\
import os
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import path

def hello(request):
    return HttpResponse(f"one {type(request).__name__} {os.getppid()} {os.environ.get('RUN_MAIN')}")

urlpatterns = [path("", hello), path("page", lambda request: render(request, "page.html"))]
""",
    "project/asgi.py": "from django.core.asgi import get_asgi_application\napplication = get_asgi_application()\n",
    "assets/style.css": "body { color: green }",
    "templates/page.html": "first",
    "gunicorn.conf.py": "raise RuntimeError('the configuration of production')",
}
APPS = '"tricorn.contrib.django", "django.contrib.staticfiles"'
ASGI = 'ASGI_APPLICATION = "project.asgi.application"'


class Project(Server):
    def __init__(self, *options: str, apps: str = APPS, more: str = "", **others: Any) -> None:
        super().__init__("", chdir=None, fresh=True, **others)
        for name, text in FILES.items():
            self.write(name, text.replace("THE_APPS", apps).replace("MORE", more))
        self.argv = [sys.executable, "manage.py", "runserver", f"127.0.0.1:{self.port}", *options]

    def write(self, name: str, text: str) -> None:
        path: Path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("options", "more", "request_class"),
    [([], "", "WSGIRequest"), ([], ASGI, "ASGIRequest"), (["--noasgi"], ASGI, "WSGIRequest")],
    ids=["wsgi", "asgi", "noasgi"],
)
def test_it_serves_the_project_and_its_static_files(options: list[str], more: str, request_class: str) -> None:
    with Project("--noreload", *options, more=more) as server:
        assert server.get("/").text == f"one {request_class} {server.pid} None"
        assert server.get("/static/style.css").text == "body { color: green }"
        server.signal(signal.SIGINT)
        assert server.wait_exit() == 0
        assert "System check identified no issues" in server.out.text
        assert re.search(r"serves (project\.asgi\.application|the project of project\.settings) at", server.log.text)
        assert "tricorn.contrib" not in server.log.text
        assert '"GET /static/style.css HTTP/1.1" 200' in server.out.text


def test_code_and_templates_are_reloaded() -> None:
    with Project() as server:
        assert server.get("/").text == f"one WSGIRequest {server.pid} true"
        assert server.get("/page").text == "first"
        replaced(
            server, lambda: server.write("project/urls.py", FILES["project/urls.py"].replace("one", "two, longer"))
        )
        until(lambda: server.get("/").text.startswith("two, longer"), "the new code")
        assert "WARNING" not in server.log.text
        replaced(server, lambda: server.write("templates/page.html", "second, longer"))
        until(lambda: server.get("/page").text == "second, longer", "the new template")


def test_static_files_are_left_out_when_asked() -> None:
    with Project("--noreload", "--nostatic") as server:
        assert server.get("/static/style.css").status == 404


def test_a_mistake_in_the_project_is_told_before_it_is_served() -> None:
    with Project("--noreload", more='STATICFILES_DIRS = "no list"', wait=False) as server:
        assert server.wait_exit() == 1
        assert "staticfiles.E001" in server.log.text


def test_the_wrong_order_is_a_mistake() -> None:
    wrong = '"django.contrib.staticfiles", "tricorn.contrib.django"'
    with Project("--noreload", apps=wrong, wait=False) as server:
        assert server.wait_exit() == 1
        assert "tricorn.E001" in server.log.text
