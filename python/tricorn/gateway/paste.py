"""Applications that a PasteDeploy file describes: Pyramid's `production.ini`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from tricorn.errors import AppImportError, BootError


def load(path: str, variables: Mapping[str, str]) -> Callable[..., Any]:
    """The application of `FILE` or `FILE#NAME`. Exceptions of its modules come through as they are."""
    try:
        from paste.deploy import loadapp
    except ModuleNotFoundError as error:
        raise BootError(f"paste needs PasteDeploy ({error}): pip install 'tricorn[paste]'.") from None
    file, _, name = path.partition("#")
    uri = f"config:{os.path.abspath(file)}" + (f"#{name}" if name else "")
    try:
        found: Callable[..., Any] = loadapp(uri, global_conf=dict(variables))
    except LookupError as error:
        raise AppImportError(f"{path} does not describe the application: {error}") from None
    return found
