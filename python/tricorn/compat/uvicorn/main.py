"""uvicorn's ways to start a server."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from tricorn.compat.absent import refuse

from .config import STARTUP_FAILURE, Config
from .server import Server

__all__ = ["STARTUP_FAILURE", "Config", "Server", "main", "run"]

__getattr__ = refuse(__name__)


def run(app: Any, *, app_dir: str | None = None, **settings: Any) -> None:
    """Serves `app` with as many workers as are asked for. Raises SystemExit if the server cannot start."""
    if app_dir is not None:
        sys.path.insert(0, app_dir)
    Server(Config(app, **settings)).run()


def main() -> NoReturn:
    """uvicorn's command line, whose flags tricorn knows. Becomes the command `tricorn`."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "tricorn", *sys.argv[1:]])
