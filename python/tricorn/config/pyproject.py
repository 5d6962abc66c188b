"""The table [tool.tricorn] of pyproject.toml."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from typing import Any

from tricorn.config.registry import BY_NAME
from tricorn.config.resolve import Layer, Raw
from tricorn.config.unavailable import UNAVAILABLE_BY_NAME, Asked
from tricorn.errors import ConfigError
from tricorn.spelling import hint

FILE = "pyproject.toml"
ORIGIN = "[tool.tricorn] in ./pyproject.toml"

# Most projects have no such table: it is looked for before a parser is loaded.
_HEADER = re.compile(rb"""^\s*\[+\s*["']?tool["']?\s*\.\s*["']?tricorn["']?\s*[\].]""", re.MULTILINE)


def read(directory: str) -> Layer:
    """The layer of the pyproject.toml in `directory`. Raises ConfigError."""
    try:
        with open(os.path.join(directory, FILE), "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return Layer({})
    except OSError as error:
        raise ConfigError(f"Cannot read ./{FILE}: {error.strerror}.") from None
    if not _HEADER.search(text):
        return Layer({})
    table = _parse(text).get("tool", {}).get("tricorn", {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{ORIGIN}: expected a table.")
    asked = tuple(found for name, value in table.items() if (found := _check_name(name, value)) is not None)
    return Layer({name: Raw(value, ORIGIN) for name, value in table.items() if name in BY_NAME}, asked=asked)


def _check_name(name: str, value: object) -> Asked | None:
    if name in BY_NAME:
        return None
    if record := UNAVAILABLE_BY_NAME.get(name):
        return None if record.asks_for_nothing(value) else record.asked(ORIGIN)
    meant = hint(name, BY_NAME, "{}")
    raise ConfigError(f"{ORIGIN}: {name} is not a setting{meant}")


def _parse(text: bytes) -> dict[str, Any]:
    for parser in ("tomllib", "tomli"):  # the first came with Python 3.11, the second is what others use before
        try:
            loads = importlib.import_module(parser).loads
        except ModuleNotFoundError:
            continue
        try:
            table: dict[str, Any] = loads(text.decode())
            return table
        except ValueError as error:
            raise ConfigError(f"./{FILE} is not valid TOML: {error}.") from None
    raise ConfigError(f"{ORIGIN} requires Python 3.11 or later, or the package tomli.")
