"""The C libraries that modules for Python bring along: only these know which version is inside."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

VERSIONS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "confluent_kafka": ("librdkafka", lambda module: module.libversion()[0]),
    "pycurl": ("libcurl", lambda module: module.version_info()[1]),
    "psycopg2": ("libpq", lambda module: _postgres(module.__libpq_version__)),
    "sqlite3": ("libsqlite3", lambda module: module.sqlite_version),
    "MySQLdb": ("libmysqlclient", lambda module: module.get_client_info()),
}
"""C library behind each module, and a function that reads its version."""


def versions() -> dict[str, str]:
    """Returns the versions of the libraries that are imported. None of the functions blocks."""
    found: dict[str, str] = {}
    for name, (library, version) in VERSIONS.items():
        module = sys.modules.get(name)
        if module is None:
            continue
        try:
            told = version(module)
        except Exception:  # it may be another module of that name
            continue
        if isinstance(told, str):
            found[library] = told
    return found


def _postgres(number: int) -> str:
    """170002 is 17.2."""
    return f"{number // 10_000}.{number % 10_000}"
