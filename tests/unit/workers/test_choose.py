"""The names of worker classes: ours, gunicorn's, and those that are not there."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from tricorn import workers
from tricorn.errors import ConfigError

PYPROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"


@pytest.mark.parametrize(
    ("name", "threads", "alias"),
    [
        ("sync", 1, "sync"),
        ("sync", 2, "gthread"),
        ("gthread", 1, "gthread"),
        ("gunicorn.workers.sync.SyncWorker", 1, "sync"),
        ("gunicorn.workers.gthread.ThreadWorker", 4, "gthread"),
        ("gevent", 1, "gevent"),
        ("gevent", 4, "gevent"),
        ("gevent_wsgi", 1, "gevent"),
        ("gevent_pywsgi", 1, "gevent"),
        ("gunicorn.workers.ggevent.GeventWorker", 1, "gevent"),
        ("gunicorn.workers.ggevent.GeventPyWSGIWorker", 1, "gevent"),
        ("gunicorn.workers.ggevent.PyWSGIWorker", 1, "gevent"),
        ("eventlet", 4, "eventlet"),
        ("gunicorn.workers.geventlet.EventletWorker", 1, "eventlet"),
    ],
)
def test_names(name: str, threads: int, alias: str) -> None:
    assert workers.choose(name, threads) == alias


def test_gunicorns_class_itself_is_its_name() -> None:
    theirs = type("GeventWorker", (), {"__module__": "gunicorn.workers.ggevent"})
    assert workers.choose(theirs, 1) == "gevent"


@pytest.mark.parametrize(
    "name",
    [
        "tornado",
        "asgi",
        "aiohttp.GunicornWebWorker",
        "gunicorn.workers.gtornado.TornadoWorker",
        "uvicorn.workers.UvicornWorker",
        "uvicorn_worker.UvicornWorker",
    ],
)
def test_what_is_not_there_yet_is_refused_as_such(name: str) -> None:
    with pytest.raises(ConfigError, match="in this version of tricorn: use sync, gthread, gevent or eventlet"):
        workers.choose(name, 1)


@pytest.mark.parametrize("name", ["SYNC", "snyc", "my.Worker", ""])
def test_what_is_no_worker_class_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is not known: expected one of sync, gthread, gevent, eventlet"):
        workers.choose(name, 1)


@pytest.mark.parametrize(("alias", "oldest"), [("gevent", "24.10.1"), ("eventlet", "0.36")])
class TestPackages:
    def test_one_that_is_missing_is_asked_for(self, alias: str, oldest: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(workers, "find_spec", lambda name: None)
        with pytest.raises(ConfigError) as caught:
            workers.choose(alias, 1)
        assert str(caught.value) == (
            f"The worker class {alias!r} needs {alias} {oldest} or newer, which is not installed: "
            f"pip install 'tricorn[{alias}]'."
        )

    @pytest.mark.parametrize("version", ["0.35", "0.1.2rc1"])
    def test_one_that_is_too_old_is_told(
        self, alias: str, oldest: str, version: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(metadata, "version", lambda name: version)
        with pytest.raises(ConfigError, match=rf"needs {alias} {oldest} or newer, {alias} 0\.[\d.]+ is installed: pip"):
            workers.choose(alias, 1)

    @pytest.mark.parametrize("version", ["{}", "{}.1", "99.0.dev3"])
    def test_one_that_is_new_enough_is_taken(
        self, alias: str, oldest: str, version: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(metadata, "version", lambda name: version.format(oldest))
        assert workers.choose(alias, 1) == alias

    def test_the_extra_asks_for_the_same(self, alias: str, oldest: str) -> None:
        found = re.search(rf'^{alias} = \["{alias}>=(.+)"\]$', PYPROJECT.read_text(), re.MULTILINE)
        assert found is not None
        assert found[1] == oldest

    def test_it_is_not_imported_to_be_asked_for(self, alias: str, oldest: str) -> None:
        code = f"import sys; from tricorn import workers; workers.choose({alias!r}, 1); print({alias!r} in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
        assert done.stdout.strip() == "False"


def test_every_name_has_a_class() -> None:
    for alias in workers.NAMES:
        assert issubclass(workers.load(alias), object)
