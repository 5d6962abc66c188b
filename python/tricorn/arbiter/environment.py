"""The environment in which everything is loaded: variables, directory, import path, descriptors."""

from __future__ import annotations

import sys

from tricorn.config import env_file
from tricorn.config.config import Config
from tricorn.errors import ConfigError
from tricorn.unpatched import os

MOST_FILES = 65_536


class Environment:
    """A configuration's changes of the process, which the next configuration can take back."""

    def __init__(self, cwd: str | None = None) -> None:
        self.cwd = os.getcwd() if cwd is None else cwd
        """The directory where the server was started; relative paths of the configuration begin there."""
        self._variables: dict[str, str | None] = {}
        """The variables of `raw_env` as they were before."""
        self._paths: list[str] = []

    def enter(self, config: Config) -> None:
        """Takes the last configuration's changes back and makes this one's. Raises ConfigError, changing nothing."""
        directory = os.path.join(self.cwd, config.chdir or "")
        from_files = self._read_files(config, directory)
        _change_directory(directory)
        self._leave()
        for key, value in {**from_files, **dict(config.raw_env)}.items():
            self._variables.setdefault(key, os.environ.get(key))
            os.environ[key] = value
        # gunicorn's order: what is named last is found first, and the working directory last of all.
        for path in (os.getcwd(), *map(os.path.abspath, config.pythonpath)):
            if path not in sys.path:
                sys.path.insert(0, path)
                self._paths.append(path)

    def _read_files(self, config: Config, directory: str) -> dict[str, str]:
        """Reads the variables of `env_file`, but for those that are set already."""
        if not config.env_file:
            return {}
        before = {key: value for key, value in os.environ.items() if key not in self._variables}
        before |= {key: value for key, value in self._variables.items() if value is not None}
        found: dict[str, str] = {}
        for path in config.env_file:
            found |= env_file.read(os.path.join(directory, path), before | found)
        return {key: value for key, value in found.items() if key not in before}

    def _leave(self) -> None:
        for key, value in self._variables.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
        self._variables.clear()
        for path in self._paths:
            if path in sys.path:
                sys.path.remove(path)
        self._paths.clear()


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


def _change_directory(path: str) -> None:
    try:
        os.chdir(path)
    except OSError as error:
        raise ConfigError(f"Invalid value for chdir: {path}: {error.strerror}.") from None
