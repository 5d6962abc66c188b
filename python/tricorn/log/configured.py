"""`logconfig`, `logconfig_dict`, `logconfig_json`: the operator configures the standard library's loggers."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tricorn.config.lookups import Whole
from tricorn.errors import ConfigError
from tricorn.log import names, targets
from tricorn.log.transaction import manage

if TYPE_CHECKING:
    from tricorn.config.config import Config

FORMAT = "%(asctime)s [%(process)d] [%(levelname)s] %(message)s"
DATES = "[%Y-%m-%d %H:%M:%S %z]"

# What a dictionary is laid over, key by key and not deeper: gunicorn's, which users' dictionaries rely on.
CONFIG_DEFAULTS: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "root": {"level": "INFO", "handlers": ["console"]},
    "loggers": {
        name: {"level": "INFO", "handlers": [handler], "propagate": True, "qualname": name}
        for name, handler in [(names.ERROR, "error_console"), (names.ACCESS, "console")]
    },
    "handlers": {
        name: {"class": "logging.StreamHandler", "formatter": "generic", "stream": f"ext://sys.{stream}"}
        for name, stream in [("console", "stdout"), ("error_console", "stderr")]
    },
    "formatters": {"generic": {"format": FORMAT, "datefmt": DATES, "class": "logging.Formatter"}},
}


def is_configured(config: Config) -> bool:
    return bool(config.logconfig_dict or config.logconfig_json or config.logconfig)


def apply(config: Config) -> None:
    """Applies the strongest of the three, if there is one. Raises ConfigError; run it in a transaction."""
    if config.logconfig_dict:
        given = config.logconfig_dict
        _apply_dict(config, _whole(given) if isinstance(given, Whole) else given, "logconfig_dict")
    elif config.logconfig_json:
        _apply_dict(config, _read_json(config.logconfig_json), f"{config.logconfig_json!r} (logconfig_json)")
    elif config.logconfig:
        origin = f"{config.logconfig!r} (logconfig)"
        if config.logconfig.endswith(".json"):
            _apply_dict(config, _whole(_read_json(config.logconfig, "logconfig")), origin)
        elif config.logconfig.endswith((".yaml", ".yml")):
            _apply_dict(config, _whole(_read_yaml(config.logconfig)), origin)
        else:
            _apply_file(config.logconfig)


def _whole(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A dictionary that names no logger of ours, as uvicorn's users have them: nothing is laid under it.

    The error log is then what `uvicorn.error` or `uvicorn` is to be, or goes to the root. The access log stays what
    `accesslog` says: a formatter of uvicorn's takes apart arguments that only uvicorn logs.
    """
    loggers = given.get("loggers") or {}
    if any(name in loggers for name in (names.ERROR, names.ACCESS, *names.SECOND_NAMES)):
        return given
    emptied: dict[str, Any] = {key: {} for key in CONFIG_DEFAULTS if isinstance(CONFIG_DEFAULTS[key], dict)}
    error = loggers.get("uvicorn.error") or loggers.get("uvicorn") or {}
    return {**emptied, **given, "loggers": {**loggers, names.ERROR: {"propagate": True, **error}}}


def retire() -> None:
    """Takes away what an earlier configuration has attached anywhere."""
    for logger in names.all_loggers():
        logger.handlers[:] = [each for each in logger.handlers if not getattr(each, "_tricorn", False)]


def _apply_dict(config: Config, given: Mapping[str, Any], origin: str) -> None:
    from logging.config import dictConfig

    merged = {**CONFIG_DEFAULTS, **given}
    if config.log_format == "json" and "formatters" not in given:
        merged["formatters"] = {"generic": {"()": "tricorn.log.json_lines.JsonFormatter"}}
    with _in_force(f"The log configuration {origin}"):
        dictConfig(merged)
    named = {names.SECOND_NAMES.get(name, name) for name in merged.get("loggers") or ()}
    for name in (names.ERROR, names.ACCESS):
        if name in named:  # under its second name it may count as one that was not given
            logging.getLogger(name).disabled = False


def _apply_file(path: str) -> None:
    from logging.config import fileConfig

    origin = f"The log configuration {path!r} (logconfig)"
    _check_readable(path, origin)
    defaults = {"__file__": path, "here": os.path.dirname(path)}
    with _in_force(origin):
        fileConfig(path, defaults=defaults, disable_existing_loggers=False)


def _read_yaml(path: str) -> Mapping[str, Any]:
    origin = f"The log configuration {path!r} (logconfig)"
    try:
        import yaml  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise ConfigError(f"{origin} needs PyYAML, which is not installed: pip install PyYAML.") from None
    _check_readable(path, origin)
    try:
        with open(path, "rb") as file:
            found = yaml.safe_load(file)
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin} is not YAML: {error}.") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{origin} must hold a mapping, not {type(found).__name__}.")
    return found


def _read_json(path: str, setting: str = "logconfig_json") -> Mapping[str, Any]:
    import json

    origin = f"The log configuration {path!r} ({setting})"
    _check_readable(path, origin)
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except ValueError as error:
        raise ConfigError(f"{origin} is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{origin} must hold an object, not {type(found).__name__}.")
    return found


def _check_readable(path: str, origin: str) -> None:
    try:
        with open(path, "rb") as file:
            file.read(1)
    except OSError as error:
        raise ConfigError(f"{origin} cannot be read: {error.strerror}.") from None


@contextmanager
def _in_force(origin: str) -> Iterator[None]:
    """Turns whatever the standard library raises into a sentence, and knows what it has attached."""
    before = {handler for logger in names.all_loggers() for handler in logger.handlers}
    with _kept_open():
        try:
            yield
        except Exception as error:
            raise ConfigError(f"{origin} cannot be used: {_reason(error)}.") from error
    for logger in names.all_loggers():
        for handler in logger.handlers:
            if handler not in before:
                manage(handler)
    for name in (names.ERROR, names.ACCESS):
        for handler in _reached(logging.getLogger(name)):
            targets.quieten(handler)


@contextmanager
def _kept_open() -> Iterator[None]:
    """Keeps the standard library from closing every handler before it has read the new configuration.

    A configuration that fails must leave the old handlers at work. Those that are replaced are closed afterwards.
    """
    known: list[Any] = logging._handlerList  # type: ignore[attr-defined]
    before = known[:]
    known.clear()
    try:
        yield
    finally:
        known[:0] = before


def _reason(error: BaseException) -> str:
    texts = []
    seen: BaseException | None = error
    while seen is not None:
        text = str(seen) if not isinstance(seen, KeyError) else f"{seen} is missing"
        texts.append(text.rstrip(".") or type(seen).__name__)
        seen = seen.__cause__
    return ": ".join(dict.fromkeys(texts)).replace("\n", " ")


def _reached(logger: logging.Logger) -> list[logging.Handler]:
    """The handlers that records of `logger` get to."""
    found: list[logging.Handler] = []
    current: logging.Logger | None = logger
    while current is not None:
        found += current.handlers
        current = current.parent if current.propagate else None
    return found


def file_behind(logger: logging.Logger) -> str | None:
    """The file that records of `logger` go to, if they go to no console as well (`capture_output`)."""
    paths: list[str] = []
    for handler in _reached(logger):
        if isinstance(handler, logging.FileHandler):
            paths.append(handler.baseFilename)
        elif isinstance(handler, logging.StreamHandler) and _is_console(handler.stream):
            return None
    return paths[0] if paths else None


def _is_console(stream: Any) -> bool:
    fileno: Callable[[], int] | None = getattr(stream, "fileno", None)
    try:
        return fileno is not None and fileno() in (targets.STDOUT, targets.STDERR)
    except (OSError, ValueError):
        return False
