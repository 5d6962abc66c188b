"""From layers to a configuration: each setting takes its value from the strongest layer that has one.

    default < platform's variables (PORT …) < GRANIAN_<FLAG>, UVICORN_<FLAG> < pyproject.toml < configuration file
            < TRICORN_<NAME> < GUNICORN_CMD_ARGS < TRICORN_CMD_ARGS < command line

Low and high are apart: a layer is raw values as they were written, and making one touches nothing; `resolve`
turns what won into values, once, and each keeps its origin so that a complaint can name it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from types import FunctionType, MethodType, ModuleType

from tricorn.config.config import DEFAULT, Config, Resolved
from tricorn.config.lookups import ExistingPath, ExistingPaths
from tricorn.config.registry import BY_NAME, SETTINGS, meant_by
from tricorn.config.setting import Action, Setting
from tricorn.config.unavailable import UNAVAILABLE, Asked
from tricorn.config.validators import Invalid, Refused
from tricorn.errors import ConfigError
from tricorn.record import Record

_YIELDING = tuple(setting for setting in SETTINGS if setting.part_of is not None and setting.part_of.yields)

_KUBERNETES = re.compile(r"TRICORN_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)")

_OTHERS = ("TRICORN_CMD_ARGS", "TRICORN_WORKER", "TRICORN_SERVES")
"""Variables of ours that are no settings; the second one is inherited by what a worker starts."""


class Raw(Record):
    """A value as it was written, and where."""

    value: object
    origin: str


class Layer(Record):
    """Raw values of one source, by the name of the setting."""

    values: Mapping[str, Raw]
    warnings: tuple[str, ...] = ()
    asked: tuple[Asked, ...] = ()
    """Names in this source that tricorn does not support."""


class _Reading:
    def __init__(self) -> None:
        self.values: dict[str, Raw] = {}
        self.warnings: list[str] = []
        self.asked: list[Asked] = []


def resolve(layers: Iterable[Layer], directory: str | None = None) -> Config:
    """The configuration that `layers`, weakest first, amount to. Raises ConfigError.

    With `directory`, the one in which the server was started, files and directories are looked up as well.
    """
    written: dict[str, Raw] = {}
    for layer in layers:
        for part in _YIELDING:
            if part.part_of is not None and part.part_of.whole in layer.values:
                written.pop(part.name, None)
        written.update(layer.values)
    resolved = {setting.name: _resolve_one(setting, written.get(setting.name)) for setting in SETTINGS}
    _divide(resolved)
    if resolved["paste"].value is not None:
        resolved["wsgi_app"] = resolved["paste"]
    _name_processes(resolved)
    if directory is not None:
        _look_up(resolved, directory)
        _log_as_paste(resolved)
    return Config(resolved)


def override(config: Config, values: Mapping[str, Raw]) -> Config:
    """The configuration with these values, stronger than all that it was resolved from. Raises ConfigError."""
    return config.having({name: _resolve_one(BY_NAME[name], raw) for name, raw in values.items()})


def read_platform(environ: Mapping[str, str]) -> Layer:
    """The layer of the variables that platforms set: PORT, WEB_CONCURRENCY …"""
    reading = _Reading()
    for setting in SETTINGS:
        for variable in setting.env_also:
            text = _read_variable(variable, environ, reading)
            if text is not None:
                value = f"0.0.0.0:{text.strip()}" if variable == "PORT" else text
                reading.values[setting.name] = Raw(value, variable)
    return Layer(reading.values, tuple(reading.warnings))


def read_environment(environ: Mapping[str, str]) -> Layer:
    """The layer of TRICORN_<NAME>."""
    reading = _Reading()
    for setting in SETTINGS:
        text = _read_variable(setting.env, environ, reading)
        if text is not None:
            reading.values[setting.name] = Raw(text, setting.env)
    reading.warnings.extend(_strangers(environ, reading))
    return Layer(reading.values, tuple(reading.warnings), tuple(reading.asked))


def _read_variable(variable: str, environ: Mapping[str, str], reading: _Reading) -> str | None:
    text = environ.get(variable)
    if text is not None and not text.strip():
        # `WEB_CONCURRENCY=` is how compose files and dashboards write "not set".
        reading.warnings.append(f"The environment variable {variable} is empty and was ignored.")
        return None
    return text


def _resolve_one(setting: Setting[object], raw: Raw | None) -> Resolved:
    if raw is None:
        return Resolved(setting.default, DEFAULT)
    try:
        return Resolved(setting.kind.parse(raw.value), raw.origin)
    except Invalid as error:
        raise _complaint(setting.name, raw.value, raw.origin, error) from None


def _complaint(name: str, value: object, origin: str, error: Invalid) -> ConfigError:
    if BY_NAME[name].action is Action.APPEND and isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]  # as it was written: one flag
    # Beside the variable that is wrong there may be some that are secret.
    shown = "" if name == "raw_env" else f": {_shown(value)}"
    end = "" if str(error).endswith("?") else "."
    return ConfigError(f"Invalid value for {name}{shown} (from {origin}): {error}{end}")


def _shown(value: object) -> str:
    """A value as its author would name it: an address in memory says nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, FunctionType | MethodType):
        return f"{value.__qualname__}()"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    text = repr(value)
    return f"an instance of {type(value).__qualname__}" if text.startswith("<") else text


def _divide(resolved: dict[str, Resolved]) -> None:
    """Gives parts that are not given themselves their share of what they belong to."""
    for setting in SETTINGS:
        if setting.part_of is not None and resolved[setting.name].origin == DEFAULT:
            whole = resolved[setting.part_of.whole]
            value = setting.part_of.derive(whole.value)
            if value != setting.default:
                resolved[setting.name] = Resolved(value, whole.origin)


def _name_processes(resolved: dict[str, Resolved]) -> None:
    """Processes are called by their name, or else by that of the application."""
    app = resolved["wsgi_app"].value
    if app is not None and resolved["default_proc_name"].origin == DEFAULT:
        resolved["default_proc_name"] = Resolved(app, DEFAULT)
    if resolved["proc_name"].value is None:
        resolved["proc_name"] = resolved["default_proc_name"]


def _look_up(resolved: dict[str, Resolved], start: str) -> None:
    """Makes `chdir` absolute, and sees that the files and directories are there."""
    chdir = resolved["chdir"]
    directory = os.path.normpath(os.path.join(start, str(chdir.value or "")))
    if not os.path.isdir(directory):
        raise _complaint("chdir", chdir.value, chdir.origin, Refused("expected a directory that exists"))
    resolved["chdir"] = Resolved(directory, chdir.origin)
    for setting in SETTINGS:
        found = resolved[setting.name]
        if isinstance(setting.kind, ExistingPath | ExistingPaths):
            try:
                setting.kind.look_up(found.value, directory)  # type: ignore[arg-type]  # the kind has made the value
            except Invalid as error:
                raise _complaint(setting.name, found.value, found.origin, error) from None


def _log_as_paste(resolved: dict[str, Resolved]) -> None:
    """A PasteDeploy file may configure the loggers, too."""
    paste, logconfig = resolved["paste"], resolved["logconfig"]
    if paste.value is None or logconfig.origin != DEFAULT:
        return
    import configparser

    file = str(paste.value).partition("#")[0]
    parser = configparser.RawConfigParser()
    try:
        parser.read(os.path.join(str(resolved["chdir"].value), file))
    except configparser.Error as error:
        raise _complaint("paste", paste.value, paste.origin, Refused(f"it cannot be read: {error}")) from None
    if parser.has_section("loggers"):
        resolved["logconfig"] = Resolved(file, paste.origin)


def _strangers(environ: Mapping[str, str], reading: _Reading) -> Iterable[str]:
    """Variables that look like ours and are not.

    Only a likely misspelling is worth a warning: Kubernetes injects TRICORN_SERVICE_HOST and the like into
    every pod beside a service of that name.
    """
    known = {setting.env for setting in SETTINGS}
    unavailable = {f"TRICORN_{record.name.upper()}": record for record in UNAVAILABLE}
    for variable in sorted(environ):
        if not variable.startswith("TRICORN_") or variable in known or variable in _OTHERS:
            continue
        if variable in unavailable:
            record = unavailable[variable]
            if not record.asks_for_nothing(environ[variable]):
                reading.asked.append(record.asked(variable))
            continue
        if _KUBERNETES.fullmatch(variable):
            continue
        meant = next(meant_by(variable.removeprefix("TRICORN_")), None)
        if meant is not None:
            yield f"Unknown environment variable {variable}; did you mean {meant.env}?"
