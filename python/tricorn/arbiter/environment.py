"""What the process is given before anything is loaded: variables, directory, import path, descriptors."""

from __future__ import annotations

import os
import sys

from tricorn.config.config import Config
from tricorn.errors import ConfigError

MOST_FILES = 65_536


def enter(config: Config) -> None:
    for key, value in config.raw_env:
        os.environ[key] = value
    _change_directory(config.chdir)
    # gunicorn's order: what is named last is found first, and the working directory last of all.
    for path in (os.getcwd(), *map(os.path.abspath, config.pythonpath)):
        if path not in sys.path:
            sys.path.insert(0, path)


def raise_file_limit() -> None:
    """Raises the soft limit of open files to the hard one: a connection is a descriptor, and 1024 are few.

    Bounded, because containers may have a hard limit of a thousand million, and programs that the application
    starts may close every descriptor up to the limit.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _change_directory(path: str | None) -> None:
    if path is None:
        return
    try:
        os.chdir(path)
    except OSError as error:
        raise ConfigError(f"Invalid value for chdir: {path}: {error.strerror}.") from None
