"""Names of packages that are not installed, and that a worker class brings along: applications may import them.

They are there while the class is imported and in its workers, and nowhere else: python-engineio takes a server for one
with `wsgi.websocket` where `import geventwebsocket` works. What an earlier generation's class has brought is forgotten.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import import_module

PACKAGES = ("geventwebsocket",)

_ROOT = os.path.dirname(__file__) + os.sep
_importing: list[str] = []
"""What is imported for the sake of a worker class; one import may ask for another."""


@contextmanager
def importing(name: str) -> Iterator[None]:
    """Around the import of a worker class."""
    _importing.append(name)
    try:
        yield
    finally:
        _importing.pop()


def is_there(package: str) -> bool:
    """Whether the name may be found just now."""
    return bool(_importing) or package in sys.modules


def keep(packages: Collection[str]) -> None:
    """Has these, and forgets the others."""
    for package in PACKAGES:
        # To look at the names of all modules is to write to their pages, which a worker then has to itself.
        if package in sys.modules and package not in packages and _is_ours(package):
            for name in [name for name in sys.modules if name.partition(".")[0] == package]:
                del sys.modules[name]
    for package in packages:
        with importing(package):
            import_module(package)


def _is_ours(name: str) -> bool:
    return (getattr(sys.modules[name], "__file__", None) or "").startswith(_ROOT)
