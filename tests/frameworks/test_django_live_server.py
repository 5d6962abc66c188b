"""`LiveServerTestCase` with tricorn's thread, in a test run of Django's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.needs import needs

needs("django")
pytestmark = pytest.mark.beyond_reference("it has no such class")

SUITE = """\
import os, sqlite3, sys, threading, urllib.request
from pathlib import Path
import django
from django.conf import settings

HERE = Path(__file__).parent
DATABASE = {"ENGINE": "django.db.backends.sqlite3", "CONN_MAX_AGE": None}
if sys.argv[1:] == ["file"]:
    DATABASE |= {"NAME": str(HERE / "db"), "TEST": {"NAME": str(HERE / "test-db")}}
settings.configure(
    DEBUG=True, ROOT_URLCONF="__main__", SECRET_KEY="only for tests", DATABASES={"default": DATABASE},
    STATIC_URL="/static/", STATICFILES_DIRS=[HERE / "assets"], DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=["tricorn.contrib.django", "django.contrib.contenttypes", "django.contrib.staticfiles"],
)
django.setup()

from django.contrib.contenttypes.models import ContentType
from django.contrib.staticfiles.testing import StaticLiveServerTestCase
from django.db import connection
from django.http import HttpResponse
from django.test.utils import get_runner
from django.urls import path
from tricorn.contrib.django import LiveServerThread

opened = []

def count(request):
    found = ContentType.objects.filter(app_label="made").count()
    opened.append(connection.connection)
    return HttpResponse(f"{found} {request.META['tricorn.worker']} {threading.current_thread().name}")

urlpatterns = [path("", count)]

class Live(StaticLiveServerTestCase):
    server_thread_class = LiveServerThread

    def get(self, target):
        with urllib.request.urlopen(self.live_server_url + target) as response:
            return response.read().decode()

    def test_what_a_test_writes_the_server_sees(self):
        ContentType.objects.create(app_label="made", model="one")
        found, worker, thread = self.get("/").split()
        assert (found, worker) == ("1", "1"), (found, worker)
        assert thread.startswith("tricorn-"), thread

    def test_static_files(self):
        assert self.get("/static/style.css") == "green"

def is_open(raw):
    try:
        raw.execute("select 1")
    except sqlite3.ProgrammingError as error:
        assert "closed" in str(error), error
        return False
    return True

if __name__ == "__main__":
    from django.test.runner import DiscoverRunner
    import unittest
    runner = DiscoverRunner(verbosity=0, interactive=False)
    runner.setup_test_environment()
    old = runner.setup_databases()
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Live))
    # The server has ended, and with it the requests.
    if connection.is_in_memory_db():
        assert opened == [connection.connection], opened
    else:
        assert list(map(is_open, opened)) == [False], opened
    runner.teardown_databases(old)
    left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    assert not left, left
    sys.exit(not result.wasSuccessful())
"""


@pytest.mark.parametrize("database", ["memory", "file"])
def test_a_suite_of_djangos(tmp_path: Path, database: str) -> None:
    (tmp_path / "suite.py").write_text(SUITE)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "style.css").write_text("green")
    command = [sys.executable, "suite.py", database]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 2 tests" in done.stderr
