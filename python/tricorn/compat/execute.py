"""`tricorn exec COMMAND …`: runs a command in whose processes gunicorn and uvicorn are this server.

    PYTHONPATH   a folder whose `sitecustomize` installs their names and then runs the one that it hides
    PATH         a folder with commands `gunicorn` and `uvicorn`, for shell scripts

Nothing outside of the command's process tree is changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from typing import NoReturn

from tricorn.errors import ConfigError

HERE = os.path.join(os.path.dirname(__file__), "exec")


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of the command."""
    changed = dict(environ)
    _put_first(changed, "PYTHONPATH", os.path.join(HERE, "site"), "")
    _put_first(changed, "PATH", os.path.join(HERE, "bin"), os.defpath)
    changed["TRICORN_EXEC_PYTHON"] = sys.executable
    changed.setdefault("TRICORN_TITLE_PREFIX", "gunicorn")
    return changed


def _put_first(environ: MutableMapping[str, str], name: str, folder: str, default: str) -> None:
    others = [path for path in environ.get(name, default).split(os.pathsep) if path and path != folder]
    environ[name] = os.pathsep.join((folder, *others))


def execute(command: Sequence[str]) -> NoReturn:
    """Becomes the command. Raises ConfigError if there is none, or none of this name."""
    if not command:
        raise ConfigError("Expected a command, as in `tricorn exec python serve.py`.")
    environ = environment(os.environ)
    sys.stdout.flush()
    try:
        os.execvpe(command[0], list(command), environ)
    except OSError as error:
        raise ConfigError(f"Cannot run {command[0]!r}: {error.strerror}.") from None
