r"""Files of variables, as `.env` files are written for python-dotenv, docker compose and shells.

    # a comment
    KEY=value                       # a comment after a blank
    export KEY = "a\nb ${OTHER}"    double quotes: \n \r \t \" \\ \$ and variables
    KEY='as it is'
    KEY=${OTHER:-default}           variables of the file so far, and of the environment

A quoted value may have several lines. A name alone sets nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tricorn.errors import ConfigError

_LINE = re.compile(
    r"""
    \s* (?: \#[^\n]* | (?:export[ \t]+)? (?P<name>[A-Za-z_][\w.-]*) [ \t]*
        (?: = [ \t]* (?: '(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\.)*)" | (?P<bare>[^'"\n][^\n]*?)? )
            (?=[ \t]*(?:[ \t]\#[^\n]*)?(?:\n|\Z)) [ \t]*(?:\#[^\n]*)? )?
    )? [ \t\r]* (?: \n | \Z )
    """,
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


def read(path: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that the file sets. Raises ConfigError, which names the line."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return parse(file.read(), path, environ)
    except OSError as error:
        raise ConfigError(f"Cannot read env_file {path!r}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"env_file {path!r} is not valid UTF-8.") from None


def parse(text: str, path: str, environ: Mapping[str, str]) -> dict[str, str]:
    text = text.replace("\r\n", "\n")
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LINE.match(text, at)
        if match is None or match.end() == at:
            number = text.count("\n", 0, at + len(text[at:]) - len(text[at:].lstrip())) + 1
            raise ConfigError(f"{path}:{number} (env_file): expected NAME=VALUE.")
        at = match.end()
        value = _value(match, {**environ, **found})
        if value is not None:
            found[match["name"]] = value
    return found


def _value(match: re.Match[str], known: Mapping[str, str]) -> str | None:
    """None if the line sets nothing."""

    def insert(variable: re.Match[str]) -> str:
        return known.get(variable[1], variable[2] or "")

    if match["single"] is not None:
        return match["single"]
    if match["double"] is not None:
        parts = re.split(r"(\\.)", match["double"], flags=re.DOTALL)
        return "".join(
            _LETTERS.get(part[1], part[1]) if part[:1] == "\\" else _VARIABLE.sub(insert, part) for part in parts
        )
    if match["name"] is None or "=" not in match[0]:
        return None
    return _VARIABLE.sub(insert, (match["bare"] or "").rstrip())
