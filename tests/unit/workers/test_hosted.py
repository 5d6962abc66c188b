"""A class that serves by itself, in this process: what the arbiter is told, and what the class finds."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.config.command_line import read_arguments
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.errors import ConfigError
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.workers import hosted, registry
from tricorn.workers.base import Worker
from tricorn.workers.messages import Ready, Retire

from tests.unit.workers.conftest import Arbiter, Core

NOTES: list[Any] = []
ACTS: list[Callable[[Any], object]] = []


class Guest(Worker):
    def __init__(self, age: int, ppid: int, sockets: Any, app: Any, timeout: float, cfg: Any, log: Any) -> None:
        super().__init__(age, ppid, sockets, app, timeout, cfg, log)
        NOTES.append((age, timeout, cfg.keepalive))

    def run(self) -> None:
        for act in ACTS:
            act(self)


@pytest.fixture
def guest(
    core: Core, hire: Callable[..., Arbiter], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Arbiter]]:
    monkeypatch.setattr(hosted, "QUIT_PAUSE", 0)
    monkeypatch.setattr(registry, "load", lambda _: hosted.host(Guest, why="serves by itself"))

    def make(*acts: Callable[[Any], object], **given: Any) -> Arbiter:
        ACTS[:] = acts
        return hire(**given)

    yield make
    NOTES.clear()


def test_it_finds_what_gunicorn_has(guest: Callable[..., Arbiter]) -> None:
    def act(worker: Any) -> None:
        NOTES.append((worker.booted, worker.alive, worker.nr, worker.wsgi.__name__))
        assert (worker.sockets, worker.wait_fds) == ([], [worker.PIPE[0]])
        before = worker.tmp.last_update()
        worker.notify()
        assert worker.tmp.last_update() > before
        assert worker.tmp.fileno() == worker.fds.life
        worker.nr += 1

    arbiter = guest(act, argv="--keep-alive 4 -t 60")
    assert arbiter.worker.live() == 0
    assert NOTES == [(7, 30, 4), (True, True, 0, "application")]
    assert arbiter.heard() == [Ready(kind="hosted")]
    assert Scoreboard(arbiter.worker.spec.page).read() is not None


@pytest.mark.parametrize(
    ("name", "hook", "status", "alive"),
    [("TERM", "", 0, False), ("QUIT", "int", 0, False), ("ABRT", "abort", 1, False), ("HUP", "", 0, True)],
)
def test_signals_of_a_hosted_worker(
    name: str, hook: str, status: int, alive: bool, guest: Callable[..., Arbiter]
) -> None:
    arbiter = guest(
        lambda _: signal.raise_signal(signal.Signals[f"SIG{name}"]),
        worker_int=lambda _: NOTES.append("int"),
        worker_abort=lambda _: NOTES.append("abort"),
    )
    assert arbiter.worker.live() == status
    assert NOTES[1:] == [hook][: len(hook)]
    assert arbiter.worker._alive is alive
    assert arbiter.heard() == [Ready(kind="hosted")], "that it leaves is no news to the arbiter"


def test_one_that_has_had_its_requests_says_so_once(guest: Callable[..., Arbiter]) -> None:
    def act(worker: Any) -> None:
        worker.alive = False
        assert not worker.alive

    arbiter = guest(act, act)
    assert arbiter.worker.live() == 0
    assert arbiter.heard() == [Ready(kind="hosted"), Retire("the application has set worker.alive to False")]


@pytest.mark.parametrize(
    ("end", "status"), [(lambda _: sys.exit(5), 5), (lambda _: sys.exit(), 0), (lambda _: 1 / 0, 1)]
)
def test_how_it_ends_is_its_status(end: Any, status: int, guest: Callable[..., Arbiter]) -> None:
    assert guest(end).worker.live() == status


def test_without_an_arbiter_it_ends(guest: Callable[..., Arbiter], monkeypatch: pytest.MonkeyPatch) -> None:
    def act(worker: Any) -> None:
        monkeypatch.setattr(type(worker.fds), "has_no_arbiter", lambda _: True)
        worker.notify()
        NOTES.append(worker.alive)

    guest(act).worker.live()
    assert NOTES[1:] == [False]


def test_probes_need_the_core() -> None:
    kind = hosted.host(Guest, why="serves by itself")
    config = resolve([read_arguments(["--admin-bind", "127.0.0.1:8001"])])
    with pytest.raises(ConfigError, match=r"admin_bind .from --admin-bind. needs .* Guest does not use: serves by"):
        kind.check_config(config, SimpleNamespace())  # type: ignore[arg-type]


def test_so_does_tls() -> None:
    kind = hosted.host(Guest, why="serves by itself")
    config = resolve([read_arguments(["-b", "http://:80", "-b", "https://:443"])])
    with pytest.raises(ConfigError, match=r"bind = .*https://:443 .from --bind. uses TLS, .* Guest does not use"):
        kind.check_config(config, SimpleNamespace())  # type: ignore[arg-type]


def test_the_configuration_of_gunicorns_own_classes_is_gunicorns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tricorn.workers import originals

    package = tmp_path / "gunicorn"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "config.py").write_text("""
class Config:
    def __init__(self):
        self.settings = {"threads": 1, "keepalive": 2, "user": "theirs"}

    def set(self, name, value):
        if name == "threads" and value == 7:
            raise ValueError("seven")
        self.settings[name] = value

    def __getattr__(self, name):
        if name == "settings" or name not in self.settings:
            raise AttributeError(name)
        return self.settings[name]
""")
    monkeypatch.syspath_prepend(str(tmp_path))
    originals._kind.cache_clear()
    try:
        assert originals.are_there()
        given = Layer({"threads": Raw(3, "conf.py"), "user": Raw(0, "conf.py")})
        made = originals.configuration(resolve([given]))
        assert (made.threads, made.keepalive, made.user) == (3, 2, "theirs")
        assert made.request_timeout == 0, "what only this server has"
        with pytest.raises(AttributeError):
            _ = made.no_such_setting
        with pytest.raises(ConfigError, match="does not accept threads: seven"):
            originals.configuration(resolve([Layer({"threads": Raw(7, "conf.py")})]))
    finally:
        originals._kind.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == "gunicorn"]:
            del sys.modules[name]
