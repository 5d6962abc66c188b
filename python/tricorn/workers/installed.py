"""Which version of a package is installed, without importing the package.

`importlib.metadata` knows it as well, and imports email, csv, zipfile and fifty others: a fifth of the CPU time of
an ASGI start. pip and uv write the version into the name of a directory beside the package, `NAME-VERSION.dist-info`
(Python Packaging User Guide, "Recording installed projects").
"""

from __future__ import annotations

import os
from importlib.util import find_spec


def version(package: str) -> str | None:
    """None if nothing tells, as of a checkout on the path."""
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
