"""Variables of uvicorn and granian: each of their flags is one as well, which click reads.

    UVICORN_TIMEOUT_KEEP_ALIVE=65    as --timeout-keep-alive 65
    UVICORN_ACCESS_LOG=false         as --no-access-log: a switch has a word for true or false
    UVICORN_HEADERS="A:1 B:2"        as --header A:1 --header B:2: words, or paths with a colon between

They become command lines, which `command_line` reads; hypercorn has none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from tricorn.config.borrowed import GRANIAN, SAME, UVICORN, Ours, rows
from tricorn.config.registry import SETTINGS
from tricorn.config.setting import Action
from tricorn.config.unavailable import Takes
from tricorn.config.validators import Boolean, Malformed

SERVERS = (GRANIAN, UVICORN)
"""Servers whose variables are read. uvicorn's value counts if both set one."""

NAMES: Mapping[str, Mapping[str, str]] = {
    UVICORN: {
        "--header": "HEADERS",
        "--reload-dir": "RELOAD_DIRS",
        "--reload-include": "RELOAD_INCLUDES",
        "--reload-exclude": "RELOAD_EXCLUDES",
    },
    GRANIAN: {
        "--ws": "WEBSOCKETS",
        "--log": "LOG_ENABLED",
        "--access-log": "LOG_ACCESS_ENABLED",
        "--access-log-fmt": "LOG_ACCESS_FMT",
        "--metrics": "METRICS_ENABLED",
    },
}
"""Names of variables that are not the flag in capitals."""

_SEPARATORS = {
    **dict.fromkeys(("--header", "--reload-include", "--reload-exclude", "--reload-ignore-dirs")),
    **dict.fromkeys(("--reload-dir", "--reload-paths", "--reload-ignore-paths", "--env-files"), os.pathsep),
}
"""Separators of several values. None: white space."""

APPLICATION = "UVICORN_APP"
_WITHOUT = ("--help", "--version")
_KUBERNETES = re.compile(r"(tcp|udp|sctp)://")
"""Prefix of UVICORN_PORT's value in every pod beside a service called `uvicorn`."""


def variables(server: str) -> dict[str, str]:
    """The flag of each variable; of a switch the one that switches it on."""
    every = (*SAME[server].split(), *rows(server))
    flags = {flag.replace("--no-", "--", 1) for flag in every if flag.startswith("--")}
    names = NAMES[server]
    return {
        f"{server}_{names.get(flag, flag[2:])}".replace("-", "_").upper(): flag for flag in flags.difference(_WITHOUT)
    }


def arguments(environ: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """The variables that are set, and what each is as words of a command line; the weakest first."""
    for server in SERVERS:
        if any(name.startswith(f"{server.upper()}_") for name in environ):
            yield from _of(server, environ)
    if environ.get(APPLICATION):
        yield APPLICATION, [environ[APPLICATION]]


def _of(server: str, environ: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    flags = _flags(server)
    given: dict[str, tuple[str, list[str]]] = {}
    for variable, flag in sorted(variables(server).items()):
        text = environ.get(variable, "").strip()
        if text and not _KUBERNETES.match(text):
            given[flag] = variable, [word for word in _words(flag, text, flags) if word.partition("=")[0] in flags]
    halves = [given.pop(flag) for flag in ("--host", "--port") if flag in given]
    if halves and not {"--uds", "--fd"} & given.keys():
        names, words = zip(*halves, strict=True)
        yield ", ".join(names), [word for some in words for word in some]
    yield from given.values()


def _words(flag: str, text: str, flags: Mapping[str, bool]) -> list[str]:
    """With `--flag=value`, since a value may begin with a dash."""
    off = f"--no-{flag[2:]}"
    if flags.get(flag) or flags.get(off):
        try:
            return [flag if Boolean().parse(text) else off]
        except Malformed:
            return [f"{flag}={text}"]  # the parser complains
    parts = text.split(_SEPARATORS[flag]) if flag in _SEPARATORS else [text]
    return [f"{flag}={part}" for part in parts]


def _flags(server: str) -> dict[str, bool]:
    """The flags of a server that are read here, and whether each is a switch."""
    actions = {flag: setting.action for setting in SETTINGS for flag in setting.flags}
    switches = {flag: actions.get(flag) in (Action.SET, Action.UNSET) for flag in SAME[server].split()}
    others = {flag: row for flag, row in rows(server).items() if not isinstance(row, Ours)}
    return switches | {flag: row.takes is Takes.NOTHING for flag, row in others.items()}
