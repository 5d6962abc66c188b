"""The names of worker classes: ours, gunicorn's, and those that are not there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tricorn.config.settings import processes
from tricorn.errors import ConfigError
from tricorn.workers import registry, versions

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
        ("asgi", 4, "asgi"),
        ("gunicorn.workers.gasgi.ASGIWorker", 1, "asgi"),
        ("uvicorn.workers.UvicornWorker", 1, "asgi"),
        ("uvicorn.workers.UvicornH11Worker", 1, "asgi"),
        ("uvicorn_worker.UvicornWorker", 1, "asgi"),
        ("uvicorn_worker.UvicornH11Worker", 1, "asgi"),
        ("tornado", 2, "tornado"),
        ("gunicorn.workers.gtornado.TornadoWorker", 1, "tornado"),
        ("aiohttp", 1, "aiohttp"),
        ("gaiohttp", 1, "aiohttp"),
        ("aiohttp.GunicornWebWorker", 1, "aiohttp"),
        ("aiohttp.worker.GunicornWebWorker", 1, "aiohttp"),
        ("aiohttp.GunicornUVLoopWebWorker", 1, "aiohttp"),
        ("aiohttp.worker.GunicornUVLoopWebWorker", 1, "aiohttp"),
    ],
)
def test_worker_class_names(name: str, threads: int, alias: str) -> None:
    assert registry.choose(name, threads) == alias


def test_gunicorns_class_itself_is_its_name() -> None:
    theirs = type("GeventWorker", (), {"__module__": "gunicorn.workers.ggevent"})
    assert registry.choose(theirs, 1) == "gevent"


@pytest.mark.parametrize("name", ["SYNC", "snyc", ""])
def test_what_is_no_worker_class_is_refused(name: str) -> None:
    with pytest.raises(
        ConfigError, match=r"Unknown worker class .*: expected one of auto, sync, gthread, gevent, eventlet"
    ):
        registry.choose(name, 1)


@pytest.mark.parametrize(("name", "meant"), [("uvicorn", "asgi"), ("wsgi", "sync"), ("threads", "gthread")])
def test_the_word_of_another_server_is_answered_with_the_class(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"Unknown worker class '{name}': .*; did you mean '{meant}'\\?$"):
        registry.choose(name, 1)


PACKAGES = {"gevent": "24.10.1", "eventlet": "0.36", "tornado": "6.2", "aiohttp": "3.9"}


@pytest.mark.parametrize(("alias", "oldest"), PACKAGES.items())
class TestPackages:
    def test_one_that_is_missing_is_asked_for(self, alias: str, oldest: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "find_spec", lambda name: None)
        with pytest.raises(ConfigError) as caught:
            registry.choose(alias, 1)
        assert str(caught.value) == (
            f"The worker class {alias!r} needs {alias} {oldest} or newer, which is not installed: "
            f"pip install 'tricorn[{alias}]'."
        )

    @pytest.mark.parametrize("version", ["0.35", "0.1.2rc1"])
    def test_one_that_is_too_old_is_told(
        self, alias: str, oldest: str, version: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(versions, "of_package", lambda name: version)
        with pytest.raises(ConfigError, match=rf"needs {alias} {oldest} or newer, {alias} 0\.[\d.]+ is installed: pip"):
            registry.choose(alias, 1)

    @pytest.mark.parametrize("version", ["{}", "{}.1", "99.0.dev3"])
    def test_one_that_is_new_enough_is_taken(
        self, alias: str, oldest: str, version: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(versions, "of_package", lambda name: version.format(oldest))
        assert registry.choose(alias, 1) == alias

    def test_the_extra_asks_for_the_same(self, alias: str, oldest: str) -> None:
        found = re.search(
            rf'^{alias} = \[(?:"tricorn-green", )?"{alias}>=(.+)"\]$', PYPROJECT.read_text(), re.MULTILINE
        )
        assert found is not None
        assert found[1] == oldest

    def test_it_is_not_imported_to_be_asked_for(self, alias: str, oldest: str) -> None:
        choose = f"from tricorn.workers import registry; registry.choose({alias!r}, 1)"
        code = f"import sys; {choose}; print({alias!r} in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == "False"


class TestLoops:
    @pytest.mark.parametrize(
        ("name", "asked", "loop"),
        [
            ("asgi", "auto", "uvloop"),
            ("asgi", "asyncio", "asyncio"),
            ("asgi", "uvloop", "uvloop"),
            ("uvicorn.workers.UvicornWorker", "auto", "uvloop"),
            ("tornado", "uvloop", "asyncio"),
            ("aiohttp.GunicornWebWorker", "uvloop", "asyncio"),
            ("aiohttp.GunicornUVLoopWebWorker", "asyncio", "uvloop"),
            ("asyncio", "auto", "asyncio"),
            ("uvloop", "auto", "uvloop"),
        ],
    )
    def test_event_loop_with_uvloop(self, name: str, asked: str, loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "find_spec", lambda name: name)
        monkeypatch.setattr(versions, "of_package", lambda name: "99.0")
        assert registry.choose_loop(name, asked) == loop

    def test_without_uvloop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "find_spec", lambda name: None)
        assert registry.choose_loop("asgi", "auto") == "asyncio"
        with pytest.raises(
            ConfigError, match=r"asgi_loop = 'uvloop' needs uvloop 0.19 or newer, which is not installed"
        ):
            registry.choose_loop("asgi", "uvloop")

    def test_a_class_on_uvloop_needs_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "find_spec", lambda name: None if name == "uvloop" else name)
        with pytest.raises(ConfigError, match=r"GunicornUVLoopWebWorker' needs uvloop .*tricorn\[uvloop\]"):
            registry.choose("aiohttp.GunicornUVLoopWebWorker", 1)

    def test_the_extra_asks_for_the_same(self) -> None:
        assert 'uvloop = ["uvloop>=0.19"]' in PYPROJECT.read_text()
        assert registry.OLDEST["uvloop"] == (0, 19)


def test_every_name_has_a_class() -> None:
    for alias in registry.NAMES:
        assert issubclass(registry.load(alias), object)


def test_the_names_of_the_setting_are_those_of_the_table() -> None:
    assert registry.NAMES == processes.WORKER_CLASSES


def test_no_name_is_of_two_families() -> None:
    names = [name for family in registry.FAMILIES.values() for name in f"{family.names} {family.on_uvloop}".split()]
    assert len(names) == len(set(names)) > 20
    assert not set(names) & set(registry.NAMES)
