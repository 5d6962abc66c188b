"""Versions of packages that are installed, without importing them, and of the C libraries that they bring along.

`importlib.metadata` knows it as well, and imports email, csv, zipfile and fifty others: a fifth of the CPU time of
an ASGI start. pip and uv write the version into the name of a directory beside the package, `NAME-VERSION.dist-info`
(Python Packaging User Guide, "Recording installed projects").
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

C_LIBRARIES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "confluent_kafka": ("librdkafka", lambda module: module.libversion()[0]),
    "pycurl": ("libcurl", lambda module: module.version_info()[1]),
    "psycopg2": ("libpq", lambda module: _postgres(module.__libpq_version__)),
    "sqlite3": ("libsqlite3", lambda module: module.sqlite_version),
    "MySQLdb": ("libmysqlclient", lambda module: module.get_client_info()),
}
"""C library behind each module, and a function that reads its version."""


def of_package(package: str) -> str | None:
    """Returns the version of a package. None if it is unknown, as for a checkout on the path."""
    if found := _beside(package):
        return found
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _beside(package: str) -> str | None:
    """The version in the name of the only directory that tells one."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    try:
        names = os.listdir(os.path.dirname(spec.submodule_search_locations[0]))
    except OSError:  # a zip file
        return None
    suffix, prefix = ".dist-info", f"{package}-"
    found = [name[len(prefix) : -len(suffix)] for name in names if name.startswith(prefix) and name.endswith(suffix)]
    return found[0] if len(found) == 1 else None


def of_c_libraries() -> dict[str, str]:
    """Returns the versions of the libraries that are imported. None of the functions blocks."""
    found: dict[str, str] = {}
    for name, (library, version) in C_LIBRARIES.items():
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
