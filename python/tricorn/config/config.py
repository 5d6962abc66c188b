"""The resolved configuration: typed values, each with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tricorn.config import doors, foreign
from tricorn.config.doors import Door
from tricorn.config.registry import BY_NAME, Settings
from tricorn.config.unavailable import UNAVAILABLE_BY_NAME
from tricorn.config.validators import AUTO_COUNT, MOLD
from tricorn.record import Record

if TYPE_CHECKING:
    from tricorn.config.sizing import Sizing

DEFAULT = "default"
"""The origin of a value that is not set."""

_NAMES = dict.fromkeys((*BY_NAME, *UNAVAILABLE_BY_NAME))


class Resolved(Record):
    """A value and the place it came from: `default`, `TRICORN_WORKERS`, `--workers` …"""

    value: object
    origin: str
    sizing: Sizing | None = None
    """Resources that `workers = auto` was computed from."""


class Config(Settings):
    """`cfg.workers` is the value of the record `Processes.workers`. A reload makes another one; only hooks change it.

    Hooks, worker classes and loggers that were written for gunicorn get it as `cfg`; what they expect there and
    we do not use ourselves stands at the end.
    """

    def __init__(self, resolved: Mapping[str, Resolved]) -> None:
        self._resolved = _sized(resolved)

    def value(self, name: str) -> object:
        return self._resolved[name].value

    def origin(self, name: str) -> str:
        return self._resolved[name].origin

    def is_default(self, name: str) -> bool:
        """Whether it is set by no file, no variable and no flag."""
        return self._resolved[name].origin == DEFAULT

    def having(self, values: Mapping[str, Resolved]) -> Config:
        """Returns a copy with these values."""
        return Config({**self._resolved, **values})

    def with_default(self, *names: str) -> Config:
        """Returns a copy with the defaults of these settings."""
        return self.having({name: Resolved(BY_NAME[name].default, DEFAULT) for name in names})

    @property
    def preloads(self) -> bool:
        """Whether the arbiter loads the application."""
        return self.preload_app is True

    @property
    def molds(self) -> bool:
        """Whether a mold loads the application and forks the workers. With `reload` each worker loads it itself."""
        return self.preload_app == MOLD and not self.reload

    @property
    def sizing(self) -> Sizing | None:
        """Resources that `workers = auto` was computed from. None if the number was given."""
        return self._resolved["workers"].sizing

    def sized_for(self, kind: str) -> Config:
        """The same, now that the class of its workers is known: `auto` workers are as many as that one needs."""
        workers = self._resolved["workers"]
        if workers.sizing is None:
            return self
        return self.having({"workers": Resolved(AUTO_COUNT, workers.origin, workers.sizing.of(kind))})

    @property
    def has_certificate(self) -> bool:
        """Whether TLS is spoken where `bind` does not say what; the hook alone does not ask for it (gunicorn)."""
        return self.certfile is not None or bool(self.certificate)

    @property
    def spoken(self) -> str:
        """Protocol of front ends where `bind` names none. Empty: it is HTTP."""
        return "" if self.protocol == "http" else self.protocol

    @property
    def doors(self) -> tuple[Door, ...]:
        """Endpoints of the server: address and protocol."""
        return doors.decided(self.bind, tls=self.has_certificate, protocol=self.spoken)

    @property
    def admin_doors(self) -> tuple[Door, ...]:
        return doors.decided(self.admin_bind, tls=False)

    # What gunicorn's Config has besides.

    def set(self, name: str, value: object) -> None:
        """Changes a setting, for hooks such as `on_starting`. What was derived from it before stays."""
        if name not in BY_NAME:
            raise AttributeError(f"No configuration setting for: {name}")
        self._resolved = _sized({**self._resolved, name: Resolved(BY_NAME[name].kind.parse(value), "a hook")})

    @property
    def settings(self) -> Mapping[str, foreign.SettingView]:
        """`cfg.settings["bind"].get()`: every setting of gunicorn's and of ours, with the types gunicorn gives them."""
        return foreign.SettingViews(_NAMES, self._value_of)

    def _value_of(self, name: str) -> object:
        return self._resolved[name].value if name in self._resolved else UNAVAILABLE_BY_NAME[name].default

    @property
    def address(self) -> list[tuple[str, int] | str | int]:
        """Addresses of `bind`: (host, port), the path of a unix socket, or a descriptor."""
        return [doors.parse(text).address.as_gunicorn for text in self.bind]

    @property
    def uid(self) -> int:
        return self.user

    @property
    def gid(self) -> int:
        return self.group

    @property
    def env(self) -> dict[str, str]:
        return dict(self.raw_env)

    @property
    def paste_global_conf(self) -> dict[str, str]:
        return dict(self.raw_paste_global_conf)

    @property
    def worker_class_str(self) -> str:
        name: str | type = self.worker_class
        if isinstance(name, str):
            is_sync = name == "sync" or name.endswith("SyncWorker")
            return "gthread" if is_sync and self.threads > 1 else name
        return name.__name__

    @property
    def is_ssl(self) -> bool:
        return self.certfile is not None or self.keyfile is not None

    @property
    def ssl_options(self) -> dict[str, object]:
        names = (*("keyfile", "certfile", "ssl_version", "cert_reqs", "ca_certs"), "suppress_ragged_eofs")
        return {name: self._value_of(name) for name in (*names, "do_handshake_on_connect", "ciphers")}

    if not TYPE_CHECKING:  # our own code does neither, and type checkers should say so if it does

        def __setattr__(self, name: str, value: object) -> None:
            if name != "_resolved":
                raise AttributeError(f"A configuration is changed by cfg.set({name!r}, value)")
            super().__setattr__(name, value)

        def __getattr__(self, name: str) -> Any:
            """The default of a setting of gunicorn's that this version refuses: `cfg.certfile` is None."""
            try:
                return foreign.as_gunicorn(name, UNAVAILABLE_BY_NAME[name].default)
            except KeyError:
                raise AttributeError(f"No configuration setting for: {name}") from None


def _sized(resolved: Mapping[str, Resolved]) -> Mapping[str, Resolved]:
    """With a number of workers in the place of `auto`."""
    workers = resolved["workers"]
    if workers.value != AUTO_COUNT:
        return resolved
    from tricorn.config import sizing

    found = workers.sizing
    if found is None:
        each, threads = resolved["max_worker_memory"].value, resolved["threads"].value
        assert isinstance(each, int)
        assert isinstance(threads, int)
        found = sizing.Sizing.here(each).of(sizing.kind_of(resolved["worker_class"].value, threads))
    return {**resolved, "workers": Resolved(found.count, workers.origin, found)}
