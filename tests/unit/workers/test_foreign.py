"""Worker classes of the user's: which are taken, what they say of settings, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tricorn.config.command_line import read_arguments
from tricorn.config.config import Config
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.errors import ConfigError
from tricorn.workers import foreign, registry
from tricorn.workers.base import Worker
from tricorn.workers.sync import SyncWorker
from tricorn.workers.uvicorn import UvicornWorker

from tests.harness.cases import with_each


class Kept(SyncWorker):
    """What pulpcore has."""

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.name = f"{self.age}@host"

    def init_process(self) -> None: ...

    def run(self) -> None:
        super().run()

    def notify(self) -> None: ...
    def handle_exit(self, sig: int, frame: Any) -> None: ...


class Timed(SyncWorker):
    def handle_request(self, *_: object) -> None: ...


class Own(Worker):
    def serve(self, core: object, gateway: object) -> None: ...


class Alone(Worker):
    """It has a run() of its own, and needs nothing of gunicorn's."""

    def run(self) -> None: ...


class Inherits(Alone):
    def run(self) -> None:
        [super(Inherits, self).run() for _ in range(1)]


def asgi(**values: Any) -> Config:
    kind = type("Mine", (UvicornWorker,), {"CONFIG_KWARGS": values})
    given = {"worker_class": kind, "keepalive": 9, "accesslog": "/var/log/access.log"}
    return registry.adapted(resolve([Layer({name: Raw(value, "conf.py") for name, value in given.items()})]))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "my_workers.py").write_text(
        "from tricorn.workers.gthread import ThreadWorker\nclass Mine(ThreadWorker): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "my_workers"
    sys.modules.pop("my_workers", None)


def test_a_class_by_name_has_its_familys_alias(module: str) -> None:
    config = resolve([read_arguments(["-k", f"{module}.Mine", "--threads", "3"])])
    assert registry.choose(config.worker_class, 1) == "gthread"
    kind = registry.kind_of(config)
    assert (kind.__name__, kind.at_once(config)) == ("Mine", 3)


def test_a_class_that_is_given_itself() -> None:
    assert foreign.load(Kept) is Kept
    assert registry.choose(Kept, 4) == "sync"
    assert list(foreign.notes(Kept)) == []


@pytest.mark.parametrize(
    ("named", "says"),
    [
        (Timed, "Timed' overrides handle_request.., which this server does not call: the hooks .* request_timeout"),
        (Timed, "runs unchanged only with gunicorn installed: pip install gunicorn"),
        (Own, "Unsupported worker class .*Own': expected .* its own run.."),
        ("os.path", "Unsupported worker class"),
        ("no_such_module.Worker", "cannot be imported: ModuleNotFoundError"),
        ("tricorn.workers.sync.SynkWorker", "is not in its module; did you mean tricorn.workers.sync.SyncWorker"),
        ("egg:no-such-distribution#it", "the distribution 'no-such-distribution' is not installed"),
        ("egg:pytest#it", "pytest has no gunicorn.workers entry point 'it'"),
    ],
)
def test_foreign_worker_class_is_refused(named: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        registry.choose(named, 1)


@pytest.mark.parametrize("named", [Alone, Inherits])
def test_a_class_with_a_run_of_its_own_is_hosted(named: type) -> None:
    kind = foreign.load(named)
    assert kind is foreign.load(named)
    assert issubclass(kind, named)
    assert (kind.alias, kind.__qualname__) == ("hosted", named.__qualname__)
    (note,) = foreign.notes(kind)
    assert f"{named.__qualname__} has a run() of its own, without super().run()" in note
    assert "without the native core" in note
    config = resolve([Layer({"worker_class": Raw(named, "conf.py")})])
    assert registry.adapted(config).handover is False


def test_strictly_a_class_with_a_run_of_its_own_is_refused() -> None:
    given = Layer({"worker_class": Raw(Alone, "conf.py"), "worker_class_strict": Raw(True, "conf.py")})
    with pytest.raises(ConfigError, match=r"Alone' has a run.. of its own, .* .worker_class_strict.: connections are"):
        registry.kind_of(resolve([given]))


def test_a_method_that_names_itself_comes_back_to_what_it_overrides() -> None:
    class Wraps(SyncWorker):
        def run(self) -> None:
            with open("/dev/null"):
                (lambda: super(Wraps, self).run())()

    assert not foreign.replaces(Wraps, "run")
    assert not foreign.replaces(SyncWorker, "run")
    assert foreign.replaces(Inherits, "run"), "the class between has one that does not"


@with_each(
    ("name", "alias"),
    [
        ("egg:gunicorn#sync", "sync"),
        ("egg:gunicorn#gthread", "gthread"),
        ("egg:meinheld#gunicorn_worker", "sync"),
        ("meinheld.gmeinheld.MeinheldWorker", "sync"),
    ],
)
def test_entry_points_by_name(name: str, alias: str) -> None:
    assert registry.choose(name, 1) == alias


def test_uvicorns_arguments_are_settings() -> None:
    config = asgi(
        loop="asyncio",
        http="httptools",
        lifespan="off",
        root_path="/shop",
        ws_max_size=1000,
        ws_per_message_deflate=False,
        timeout_keep_alive=3,
        limit_concurrency=20,
        proxy_headers=False,
        interface="asgi3",
        log_config={"version": 1},
        access_log=True,
        factory=True,
    )
    assert (config.asgi_loop, config.asgi_lifespan, config.root_path) == ("asyncio", "off", "/shop")
    assert (config.websocket_max_message_size, config.websocket_compression) == (1000, False)
    assert (config.keepalive, config.worker_connections, config.forwarded_allow_ips) == (3, 20, "")
    assert (config.logconfig_dict, config.factory) == ({"version": 1}, True)
    assert (config.worker_class.__name__, config.accesslog) == ("Mine", "/var/log/access.log")
    assert config.origin("root_path") == "CONFIG_KWARGS of Mine"


def test_what_uvicorn_is_not_told_stays() -> None:
    config = asgi(limit_max_requests=None, log_config=None, root_path="")
    assert config.is_default("logconfig")
    assert (config.keepalive, config.max_requests) == (9, 0)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"interface": "wsgi"}, "CONFIG_KWARGS of Mine: this worker class does not support WSGI applications"),
        ({"interface": "asgi2"}, "Invalid value for interface .from CONFIG_KWARGS of Mine.: expected one of auto"),
        ({"loop": "trio"}, "Invalid value for asgi_loop: trio .from CONFIG_KWARGS of Mine"),
        ({"fd": 3}, "'fd', which tricorn does not support"),
        ({"threads": 3}, "'threads', which tricorn does not support"),
        ({"ssl_keyfile_password": "s"}, "CONFIG_KWARGS of Mine: ssl_keyfile_password: keys are not encrypted"),
        ({"lifespan": "maybe"}, "Invalid value for asgi_lifespan: maybe .from CONFIG_KWARGS of Mine"),
    ],
)
def test_uvicorns_arguments_that_are_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        asgi(**values)


def test_what_is_not_called_is_told() -> None:
    """Langflow's class handles signals there."""

    class Mine(UvicornWorker):
        async def _serve(self) -> None: ...

    (note,) = foreign.notes(Mine)
    assert "Mine overrides _serve(), which tricorn does not call" in note
