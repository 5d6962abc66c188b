"""Settings made by assigning to gunicorn's names in a configuration file: the server's name in responses."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from tricorn.config.load import Loaded, Sources, load
from tricorn.config.resolve import Raw, override
from tricorn.record import replace

WSGI = "gunicorn.http.wsgi"


class FileSources(Sources):
    """Sources whose configuration file may assign."""

    def load(self) -> Loaded:
        return with_assigned(load(self))


def with_assigned(loaded: Loaded) -> Loaded:
    """Returns the configuration with assigned values for settings that are not set."""
    config = loaded.config
    if not config.is_default(SETTING):
        return loaded
    raw = _response() or _constant()
    return loaded if raw is None else replace(loaded, config=override(config, {SETTING: raw}))


def _constant() -> Raw | None:
    """`gunicorn.SERVER_SOFTWARE = "…"`, or `SERVER`, which is the newer gunicorn's."""
    package: Any = sys.modules.get("gunicorn")
    if package is None:
        return None
    usual = {"SERVER": "gunicorn", "SERVER_SOFTWARE": f"gunicorn/{getattr(package, '__version__', '')}"}
    for name, value in usual.items():
        if getattr(package, name, value) != value:
            return Raw(str(getattr(package, name)), f"gunicorn.{name}")
    return None


def _response() -> Raw | None:
    """`gunicorn.http.wsgi.Response` with another `default_headers`: the field Server that it makes, or none."""
    response = getattr(sys.modules.get(WSGI), "Response", None)
    made = getattr(response, "default_headers", None)
    if response is None or (response.__module__, getattr(made, "__module__", WSGI)) == (WSGI, WSGI):
        return None
    request = SimpleNamespace(version=(1, 1), method="GET", should_close=lambda: False)
    probe = response.__new__(response)
    vars(probe).update(
        req=request, version="gunicorn", status="200 OK", headers=[], must_close=False, chunked=False, upgrade=False,
        response_length=0,
    )  # fmt: skip
    try:
        lines = [str(line) for line in probe.default_headers()]
    except Exception:  # it asks for more than there is
        return None
    named = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("server:")]
    return Raw(named[0] if named else "", f"{WSGI}.Response.default_headers")


SETTING = "server_header"
