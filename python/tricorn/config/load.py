"""Reading the configuration from everywhere, at the start and again at every reload."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tricorn.config import command_line, config_file, http2, pyproject
from tricorn.config.config import DEFAULT, Config
from tricorn.config.resolve import Layer, Raw, read_environment, read_platform, resolve
from tricorn.config.unavailable import judge
from tricorn.errors import ConfigError
from tricorn.record import Record

NOTHING = Layer({})


class Sources(Record):
    """Sources of the configuration, as they were at the start. Later changes of the process do not count."""

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    cwd: str
    program: Layer | None = None
    """Settings of a program that runs the server. Only files that it names are read then."""
    application: Any = None
    """The program's own application, which no name leads to."""
    reads_environment: bool = True

    @classmethod
    def here(cls, argv: Sequence[str]) -> Sources:
        """`argv` without the program's name, and the environment and directory of this process."""
        return cls(tuple(argv), dict(os.environ), working_directory())

    def load(self) -> Loaded:
        """`load`; a program that starts the server has sources of its own."""
        return load(self)


class Loaded(Record):
    config: Config
    warnings: tuple[str, ...]
    file: str | None = None
    """The configuration file that was read; None if there is none."""
    layers: tuple[Layer, ...] = ()
    """Layers that `config` was resolved from, the weakest first."""
    variables: tuple[str, ...] = ()
    """Variables in force that are written for platforms or other servers."""
    project: str | None = None
    """`./pyproject.toml`, if it has settings."""

    @property
    def files(self) -> tuple[str, ...]:
        """All files that settings were read from, the weakest first."""
        return tuple(file for file in (self.project, self.file) if file is not None)


def load(sources: Sources, weaker: Layer = NOTHING, *, needs_application: bool = True) -> Loaded:
    """Reads and executes everything anew; `weaker` is weaker than any file.

    Raises ConfigError, having put back what a failing file has changed; and, as argparse does, SystemExit on
    arguments that cannot be read, and for --help and --version.
    """
    arguments = command_line.read_arguments(sources.argv)
    environ = sources.environ if sources.reads_environment else {}
    from_variables = command_line.read_environment_arguments(environ)
    platform, environment, program = read_platform(environ), read_environment(environ), sources.program or Layer({})
    others = command_line.read_borrowed_environment(environ)
    with _working_in(sources.cwd):
        project = pyproject.read(sources.cwd)
        named_by = [project, program, environment, *from_variables, arguments]
        location, warnings = _find_file(named_by, sources.cwd, look=sources.program is None)
        with config_file.undone_on_failure(location):
            if sources.cwd not in sys.path:
                sys.path.insert(0, sources.cwd)
            from_file = Layer({}) if location is None else config_file.read(location, sources.cwd)
            layers = [
                _found(location), platform, others, project, weaker, from_file, program,
                environment, *from_variables, arguments,
            ]  # fmt: skip
            config = resolve(layers, sources.cwd)
            if config.reload and sources.application is not None:
                raise ConfigError(OBJECT)
            left_out = judge((asked for layer in layers for asked in layer.asked), config.unavailable)
            if config.wsgi_app is not None and config.wsgi_app.endswith(".ini"):
                config_file.refuse_uwsgis(config.wsgi_app, config.wsgi_app)
            if config.wsgi_app is None and needs_application:
                raise ConfigError("No application module specified. Name it, as in `tricorn MODULE:APPLICATION`.")
    of_layers = (warning for layer in layers for warning in layer.warnings)
    warnings = (*warnings, *of_layers, *left_out, *http2.warnings(config))
    file = None if location is None else location.text
    named = f"./{pyproject.FILE}" if project.values or project.asked else None
    return Loaded(config, warnings, file, tuple(layers), _in_force(config, (platform, others)), named)


def _in_force(config: Config, layers: Iterable[Layer]) -> tuple[str, ...]:
    """Returns the origins of values in these layers that no stronger layer overrides."""
    raws = [(name, raw) for layer in layers for name, raw in layer.values.items()]
    return tuple(dict.fromkeys(raw.origin for name, raw in raws if config.origin(name) == raw.origin))


OBJECT = "reload requires the application as 'module:attribute'; an object cannot be loaded again."


def _find_file(
    layers: Sequence[Layer], directory: str, *, look: bool
) -> tuple[config_file.Location | None, tuple[str, ...]]:
    """The configuration file that the strongest of `layers` names, or with `look` one that is there; and warnings."""
    named = [layer.values["config"] for layer in layers if "config" in layer.values]
    if named:
        return _location(named[-1]), ()
    return config_file.find_default(directory) if look else (None, ())


def _found(location: config_file.Location | None) -> Layer:
    """Weaker than all others: a file that no layer has named."""
    return Layer({} if location is None else {"config": Raw(location.text, DEFAULT)})


def _location(named: Raw) -> config_file.Location:
    text = named.value.strip() if isinstance(named.value, str) else ""
    if not text.removeprefix("python:").removeprefix("file:"):
        expected = "expected PATH, file:PATH or python:MODULE"
        raise ConfigError(f"Invalid value for config: {named.value!r} (from {named.origin}): {expected}.")
    return config_file.Location.parse(text)


@contextmanager
def _working_in(directory: str) -> Iterator[None]:
    """Works in `directory`, and comes back to where the process was."""
    try:
        previous = os.getcwd()
    except FileNotFoundError:
        previous = None  # it is gone: a deployment may remove the old one
    try:
        os.chdir(directory)
    except OSError as error:
        raise ConfigError(
            f"The directory in which the server was started no longer exists: {directory!r}: {error.strerror}."
        ) from None
    try:
        yield
    finally:
        if previous is not None:
            with suppress(OSError):
                os.chdir(previous)


def working_directory() -> str:
    """The directory under the name by which the shell knows it.

    Deployments switch a symbolic link to the next release: a reload must follow the link and not come back to
    the release that it pointed to before.
    """
    actual = os.getcwd()
    named = os.environ.get("PWD", "")
    try:
        return named if os.path.isabs(named) and os.path.samefile(named, actual) else actual
    except OSError:
        return actual
