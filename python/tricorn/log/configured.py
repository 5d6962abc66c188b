"""`logconfig`, `logconfig_dict`, `logconfig_json`: the operator configures the standard library's loggers."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tricorn.config.lookups import Whole
from tricorn.errors import ConfigError
from tricorn.log import names, targets

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
        origin = f"{config.logconfig_json!r} (logconfig_json)"
        _apply_dict(config, _parsed(config.logconfig_json, origin), origin)
    elif config.logconfig:
        origin = f"{config.logconfig!r} (logconfig)"
        if config.logconfig.endswith((".json", ".yaml", ".yml")):
            _apply_dict(config, _whole(_parsed(config.logconfig, origin)), origin)
        else:
            _apply_file(config.logconfig, origin)


def retire() -> None:
    """Takes away what an earlier configuration has attached anywhere."""
    for logger in names.all_loggers():
        logger.handlers[:] = [each for each in logger.handlers if not getattr(each, "_tricorn", False)]


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


def _apply_dict(config: Config, given: Mapping[str, Any], origin: str) -> None:
    from logging.config import dictConfig

    merged = {**CONFIG_DEFAULTS, **given}
    if config.log_format == "json" and "formatters" not in given:
        merged["formatters"] = {"generic": {"()": "tricorn.log.json_lines.JsonFormatter"}}
    loggers = merged.get("loggers") or {}
    merged["loggers"] = {names.SECOND_NAMES.get(name, name): logger for name, logger in loggers.items()}
    with _in_force(origin):
        dictConfig(merged)


def _apply_file(path: str, origin: str) -> None:
    from configparser import ConfigParser
    from logging.config import fileConfig

    text = _read(path, origin).decode("utf-8", "surrogateescape")
    with _in_force(origin):
        parser = ConfigParser({"__file__": path, "here": os.path.dirname(path)})
        parser.read_string(text, path)
        for section in parser.sections():
            name = parser.get(section, "qualname", fallback="")
            if name in names.SECOND_NAMES:
                parser.set(section, "qualname", names.SECOND_NAMES[name])
        fileConfig(parser, disable_existing_loggers=False)


def _parsed(path: str, origin: str) -> Mapping[str, Any]:
    text, is_yaml = _read(path, origin), path.endswith((".yaml", ".yml"))
    try:
        found = import_module("yaml").safe_load(text) if is_yaml else import_module("json").loads(text)
    except ModuleNotFoundError:
        sentence = "needs PyYAML, which is not installed: pip install PyYAML."
        raise ConfigError(f"The log configuration {origin} {sentence}") from None
    except Exception as error:
        raise ConfigError(f"The log configuration {origin} is not {'YAML' if is_yaml else 'JSON'}: {error}.") from None
    if not isinstance(found, dict):
        raise ConfigError(f"The log configuration {origin} must hold an object, not {type(found).__name__}.")
    return found


def _read(path: str, origin: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"The log configuration {origin} cannot be read: {error.strerror}.") from None


@contextmanager
def _in_force(origin: str) -> Iterator[None]:
    """Turns whatever the standard library raises into a sentence, and knows what it has attached.

    `logging.config` begins with closing every handler on this list; a configuration that fails must leave the old ones
    at work. The transaction closes those that are replaced.
    """
    before = names.handlers()
    registered: list[Any] = logging._handlerList  # type: ignore[attr-defined]
    kept, registered[:] = registered[:], []
    try:
        yield
    except Exception as error:
        raise ConfigError(f"The log configuration {origin} cannot be used: {_reason(error)}.") from error
    finally:
        registered[:0] = kept
    for handler in names.handlers() - before:
        targets.manage(handler)
    for name in (names.ERROR, names.ACCESS):
        for handler in _reached(logging.getLogger(name)):
            targets.quieten(handler)


def _reason(error: BaseException | None) -> str:
    texts = []
    while error is not None:
        text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        texts.append(text.rstrip(".") or type(error).__name__)
        error = error.__cause__
    return ": ".join(dict.fromkeys(texts)).replace("\n", " ")


def _reached(logger: logging.Logger | None) -> Iterator[logging.Handler]:
    """The handlers that records of `logger` get to."""
    while logger is not None:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None


def file_behind(logger: logging.Logger) -> str | None:
    """The file that records of `logger` go to, if they go to no console as well (`capture_output`)."""
    handlers = list(_reached(logger))
    if any(_is_console(getattr(handler, "stream", None)) for handler in handlers):
        return None
    return next((handler.baseFilename for handler in handlers if isinstance(handler, logging.FileHandler)), None)


def _is_console(stream: Any) -> bool:
    try:
        return stream.fileno() in (targets.STDOUT, targets.STDERR)
    except (OSError, ValueError, AttributeError):
        return False
