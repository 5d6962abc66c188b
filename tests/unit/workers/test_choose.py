"""The names of worker classes: ours, gunicorn's, and those that are not there."""

from __future__ import annotations

import pytest
from tricorn import workers
from tricorn.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "threads", "alias"),
    [
        ("sync", 1, "sync"),
        ("sync", 2, "gthread"),
        ("gthread", 1, "gthread"),
        ("gunicorn.workers.sync.SyncWorker", 1, "sync"),
        ("gunicorn.workers.gthread.ThreadWorker", 4, "gthread"),
    ],
)
def test_names(name: str, threads: int, alias: str) -> None:
    assert workers.choose(name, threads) == alias


@pytest.mark.parametrize(
    "name",
    [
        "gevent",
        "eventlet",
        "tornado",
        "asgi",
        "aiohttp.GunicornWebWorker",
        "gunicorn.workers.ggevent.GeventWorker",
        "uvicorn.workers.UvicornWorker",
        "uvicorn_worker.UvicornWorker",
    ],
)
def test_what_is_not_there_yet_is_refused_as_such(name: str) -> None:
    with pytest.raises(ConfigError, match="is not available in this version of tricorn: use sync or gthread"):
        workers.choose(name, 1)


@pytest.mark.parametrize("name", ["SYNC", "snyc", "my.Worker", ""])
def test_what_is_no_worker_class_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is not known: expected one of sync, gthread"):
        workers.choose(name, 1)


def test_every_name_has_a_class() -> None:
    for alias in workers.NAMES:
        assert issubclass(workers.load(alias), object)
