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
from tricorn.log import aliases, names, targets

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


def apply(config: Config) -> str:
    """Applies the strongest of the three, if there is one, and links the names of the logs.

    Returns a warning, or an empty text. Raises ConfigError; run it in a transaction.
    """
    if config.logconfig_dict:
        given, origin = config.logconfig_dict, "logconfig_dict"
        entries = _apply_dict(config, given, origin, whole=isinstance(given, Whole))
    elif config.logconfig_json:
        origin = f"{config.logconfig_json!r} (logconfig_json)"
        entries = _apply_dict(config, _parsed(config.logconfig_json, origin), origin)
    elif config.logconfig:
        origin = f"{config.logconfig!r} (logconfig)"
        if config.logconfig.endswith((".json", ".yaml", ".yml")):
            entries = _apply_dict(config, _parsed(config.logconfig, origin), origin, whole=True)
        else:
            entries = _apply_file(config.logconfig, origin)
    else:
        aliases.link({})
        return ""
    aliases.link(entries)
    if names.ERROR not in entries:
        _set_asked_level(config)
    for name in aliases.ALL_NAMES:
        for handler in targets.reached(logging.getLogger(name)):
            targets.quieten(handler)
    if not aliases.ALL_NAMES.isdisjoint(entries):
        return ""
    return _complaint(
        origin, "the handlers of the root logger" if logging.getLogger(names.ERROR).propagate else "errorlog"
    )


def _complaint(origin: str, where: str) -> str:
    """Says what is wrong with a configuration that names no logger of the server."""
    return (
        f"The log configuration {origin} does not configure the server's loggers; their lines go to {where}. Add "
        "gunicorn.error and gunicorn.access, or uvicorn and uvicorn.access."
    )


def _set_asked_level(config: Config) -> None:
    """Sets the level of uvicorn's loggers: `--log-level` counts, as with uvicorn, whatever the configuration says."""
    if config.is_default("loglevel"):
        return
    for name in (names.ERROR, names.ACCESS):
        log = logging.getLogger(name)
        routed = aliases.route(log)
        if routed is not log:
            routed.setLevel(config.loglevel.upper())


def retire() -> None:
    """Takes away what an earlier configuration has attached anywhere."""
    for logger in names.all_loggers():
        logger.handlers[:] = [each for each in logger.handlers if not getattr(each, "_tricorn", False)]


def _apply_dict(config: Config, given: Mapping[str, Any], origin: str, *, whole: bool = False) -> aliases.Entries:
    """Applies a dictionary. What it says of each logger.

    A `whole` one that names none of gunicorn's loggers, as uvicorn's users have them, has no defaults laid under it.
    An error log that it does not name goes to the root, if that has handlers.
    """
    from logging.config import dictConfig

    loggers: Mapping[str, Any] = given.get("loggers") or {}
    if whole and not any(name in loggers for name in (names.ERROR, names.ACCESS)):
        empty: dict[str, Any] = {key: {} for key, value in CONFIG_DEFAULTS.items() if isinstance(value, dict)}
        merged = {**empty, **given}
    else:
        merged = {**CONFIG_DEFAULTS, **given}
        loggers = merged.get("loggers") or {}
    if config.log_format == "json" and "formatters" not in given:
        merged["formatters"] = {"generic": {"()": "tricorn.log.json_lines.JsonFormatter"}}
    with _in_force(origin):
        dictConfig(merged)
    aliases.enable(but=loggers)
    if whole and aliases.ERROR_NAMES.isdisjoint(loggers) and logging.root.handlers:
        error = logging.getLogger(names.ERROR)
        error.handlers, error.propagate = [], True
    return loggers


def _apply_file(path: str, origin: str) -> aliases.Entries:
    from configparser import ConfigParser
    from logging.config import fileConfig

    text = _read(path, origin).decode("utf-8", "surrogateescape")
    with _in_force(origin):
        parser = ConfigParser({"__file__": path, "here": os.path.dirname(path)})
        parser.read_string(text, path)
        fileConfig(parser, disable_existing_loggers=False)
    sections = [parser[section] for section in parser.sections() if section.startswith("logger_")]
    return {section["qualname"]: section for section in sections if "qualname" in section}


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


def _reason(error: BaseException | None) -> str:
    texts = []
    while error is not None:
        text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        texts.append(text.rstrip(".") or type(error).__name__)
        error = error.__cause__
    return ": ".join(dict.fromkeys(texts)).replace("\n", " ")


def file_behind(logger: logging.Logger) -> str | None:
    """The file that records of `logger` go to, if they go to no console as well (`capture_output`)."""
    handlers = list(targets.reached(logger))
    if any(_is_console(getattr(handler, "stream", None)) for handler in handlers):
        return None
    return next((handler.baseFilename for handler in handlers if isinstance(handler, logging.FileHandler)), None)


def _is_console(stream: Any) -> bool:
    try:
        return stream.fileno() in (targets.STDOUT, targets.STDERR)
    except (OSError, ValueError, AttributeError):
        return False
