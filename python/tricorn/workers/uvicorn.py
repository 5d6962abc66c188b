"""uvicorn's worker class, whose `CONFIG_KWARGS` are settings here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tricorn.config import program
from tricorn.config.borrowed import UVICORN, names_of
from tricorn.config.resolve import Raw
from tricorn.config.unavailable import judge
from tricorn.errors import ConfigError
from tricorn.workers.asgi import AsgiWorker


class UvicornWorker(AsgiWorker):
    """uvicorn's worker class, an alias of `asgi`. Projects derive from it to set `CONFIG_KWARGS`."""

    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {"loop": "auto", "http": "auto"}

    @classmethod
    def settings(cls) -> Mapping[str, Raw]:
        """Returns uvicorn's arguments as settings, as `tricorn.run` does. Refuses those of processes and sockets."""
        who = f"CONFIG_KWARGS of {cls.__qualname__}"
        given = {name: value for name, value in cls.CONFIG_KWARGS.items() if not _says_nothing(name, value)}
        for name in given:
            if name not in names_of(UVICORN) or name in _THE_SERVERS:
                raise ConfigError(f"{who} has {name!r}, which tricorn does not support.")
        layer = program.read(given, who)
        judge(layer.asked, "refuse")
        values = dict(layer.values)
        kind = values.pop("worker_class", None)
        if kind is not None and kind.value != "asgi":
            raise ConfigError(f"{who}: this worker class does not support WSGI applications.")
        return values


class UvicornH11Worker(UvicornWorker):
    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {"loop": "asyncio", "http": "h11"}


def _says_nothing(name: str, value: object) -> bool:
    """None is uvicorn's word for no limit, or its default; the access log is on where the server's is."""
    return value is None or name in _NOTHING_TO_DO or (name == "access_log" and bool(value))


_NOTHING_TO_DO = frozenset(("app", "env_file", "http", "ws"))
_THE_SERVERS = frozenset(("host", "port", "uds", "fd", "workers", "reload", "app_dir"))
