"""Standard modules that the arbiter imports before it forks, so that workers share their memory.

The arbiter itself needs few modules. Otherwise each worker would load what a web framework imports: 5 MiB of a worker
with Flask, and a third of the time that it takes to boot. gunicorn's arbiter has most of these modules by itself.

Nothing of the user's is imported: a reload has to load that anew. An application without any imports needs no modules,
and would be served later for their sake; its source is searched for imports first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from tricorn.unpatched import os

if TYPE_CHECKING:
    from tricorn.config.config import Config

CALCULATING = (
    "base64", "calendar", "csv", "decimal", "difflib", "email.message", "email.parser", "hashlib", "hmac", "html",
    "http.cookies", "ipaddress", "mimetypes", "pathlib", "pickle", "platform", "secrets", "shutil", "unicodedata",
    "urllib.parse", "uuid",
)  # fmt: skip
"""Modules that do not wait, and keep no lock or function of the modules that greenlet libraries patch."""

COMMON = (
    *CALCULATING, "http.client", "importlib.metadata", "importlib.resources", "pkgutil", "pprint", "socketserver",
    "ssl", "tempfile", "zipfile",
)  # fmt: skip
"""Modules that at least three of aiohttp, Django, FastAPI, Flask, Litestar, Quart, Starlette and tornado import."""

ASGI_FRAMEWORKS = (
    "blacksheep", "django.core.asgi", "falcon.asgi", "fastapi", "litestar", "quart", "sanic", "starlette",
)  # fmt: skip

MOST_SOURCE = 65_536
"""Bytes of the application's source that are searched."""

_IMPORT = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([.\w]+)", re.MULTILINE)


def import_modules(names: Iterable[str]) -> None:
    """Imports standard modules. Modules that this Python was built without (`ssl`) are left out.

    Does nothing if a directory before the standard library in `sys.path` has a module of a standard name: it is the
    user's module that would be imported, here or by one of these modules.
    """
    if _are_shadowed():
        return
    for name in names:
        with suppress(ImportError):
            import_module(name)


def imported_by(config: Config) -> list[str]:
    """Returns the modules outside the standard library that the application's module names in its imports.

    Only the text is read. An application whose source is not found has none.
    """
    module, _, _ = (config.wsgi_app or "").partition(":")
    path = module if module.endswith(".py") else _find_source(module)
    try:
        with open(path, "rb") as stream:
            source = stream.read(MOST_SOURCE)
    except OSError:
        return []
    names = [found.decode() for found in _IMPORT.findall(source)]
    return [name for name in names if name.partition(".")[0] not in sys.stdlib_module_names]


def is_asgi(imported: Iterable[str]) -> bool:
    """Whether these are imports of an ASGI application, as far as one can tell from names."""
    return any(f"{name}.".startswith(f"{framework}.") for name in imported for framework in ASGI_FRAMEWORKS)


def _find_source(module: str) -> str:
    parts = module.split(".")
    candidates = (
        path
        for directory in sys.path
        for path in (os.path.join(directory, *parts) + ".py", os.path.join(directory, *parts, "__init__.py"))
    )
    return next(filter(os.path.isfile, candidates), "")


def _are_shadowed() -> bool:
    """Whether the name of a standard module leads to another one; also if the standard library is in no directory."""
    library = os.path.dirname(os.__file__)
    if library not in sys.path:
        return True
    return any(any(_standard_names_in(directory)) for directory in sys.path[: sys.path.index(library)])


def _standard_names_in(directory: str) -> Iterator[str]:
    """Yields the names of modules in a directory that standard modules have, too."""
    try:
        names = os.listdir(directory or os.curdir)
    except OSError:  # zip files too: CPython has one for the whole standard library in its path
        return
    for name in names:
        stem, dot, extension = name.partition(".")
        if stem not in sys.stdlib_module_names:
            continue
        is_package = not dot and os.path.isfile(os.path.join(directory, name, "__init__.py"))
        if is_package or extension == "py" or extension.endswith("so"):
            yield stem
