"""Renders docs/reference/settings.md and docs/migrate/flags.md from the records in python/tricorn/config.

python scripts/render_settings.py           writes the pages
python scripts/render_settings.py --check   fails if they are not what the records say
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from tricorn.config.addresses import Addresses
from tricorn.config.borrowed import BORROWED, SAME, SERVERS, Nothing, Ours, Refused, Sets
from tricorn.config.borrowed_environment import APPLICATION, NAMES
from tricorn.config.collectors import StatsdHost, SyslogAddress
from tricorn.config.doors import Doors
from tricorn.config.header_fields import HeaderFields, ServerName
from tricorn.config.kinds import CertificateFiles, CertReqs, OffloadTargets, ProxyHeaders
from tricorn.config.lookups import (
    ClassName,
    Dictionary,
    ExistingPath,
    ExistingPaths,
    Group,
    Hook,
    User,
)
from tricorn.config.registry import SETTINGS
from tricorn.config.setting import Action, Setting
from tricorn.config.unavailable import UNAVAILABLE
from tricorn.config.validators import (
    Boolean,
    Bytes,
    Choice,
    Choices,
    EnvAssignments,
    HeaderValues,
    Integer,
    Kind,
    Milliseconds,
    Networks,
    OptionalText,
    OrAuto,
    Seconds,
    Text,
    TextList,
    Umask,
    UrlPath,
    WorkerCount,
)

DOCS = Path(__file__).resolve().parent.parent / "docs"

FLAGS_INTRODUCTION = """\
# Flags of uvicorn, hypercorn and granian

<!-- Rendered by scripts/render_settings.py from python/tricorn/config/borrowed.py: change that. -->

Command lines of these servers start with `tricorn` in the place of the server's name: `uvicorn main:app --host 0.0.0.0
--proxy-headers` becomes `tricorn main:app --host 0.0.0.0 --proxy-headers`. Every flag that they have (uvicorn 0.54,
hypercorn 0.18, granian 2.8) is in the tables. Names on the right are [settings](../reference/settings.md). With
`--unavailable warn` a *refused* flag is left out with a warning. These flags have no abbreviations.

What is different although the flags are the same: uvicorn writes an access log if it is not told otherwise, tricorn
with `--access-log`. uvicorn waits for ever when it stops, tricorn for `graceful_timeout`.

The loggers of these servers, such as `uvicorn.access`, are [aliases of tricorn's
own](../reference/log-formats.md#loggers), in applications and in the files of `--log-config`.
"""

VARIABLES = """\
## Variables

Each flag of uvicorn's and granian's is read as a variable, too, as these servers do: its name in capitals behind
`UVICORN_` or `GRANIAN_`. hypercorn has none.

* `UVICORN_TIMEOUT_KEEP_ALIVE=65` is `--timeout-keep-alive 65`.
* A switch is `true` or `false`: `UVICORN_ACCESS_LOG=false` is `--no-access-log`.
* Several values are separated by spaces, and paths by `:`, as in `UVICORN_RELOAD_DIRS=src:templates`.
* `UVICORN_WORKERS` is stronger than `WEB_CONCURRENCY`. Everything that is written for tricorn or gunicorn is stronger
  than these variables: `[tool.tricorn]`, a configuration file, `TRICORN_WORKERS`, the command line.
* An empty variable is not set. Nor is `UVICORN_PORT=tcp://10.0.0.7:80`, which Kubernetes puts into every pod beside a
  service of that name.

The log of a start names those that are in force, and `--print-config` shows what each has set. These have names of
their own:

| Variable | Flag |
|---|---|"""

INTRODUCTION = """\
# Settings

<!-- Rendered by scripts/render_settings.py from the records in python/tricorn/config/settings: change those. -->

Every setting has one name, and can be given in these places. What stands further down wins:

1. its default;
2. a variable that platforms set, such as `PORT` or `WEB_CONCURRENCY`;
3. [a variable of uvicorn's or granian's](../migrate/flags.md#variables), such as `UVICORN_PORT`;
4. the table `[tool.tricorn]` of `./pyproject.toml`, by its name;
5. the configuration file, by its name: the file of `--config`, or else `./tricorn.conf.py` or `./gunicorn.conf.py`;
6. the variable `TRICORN_<NAME>`;
7. the variable `GUNICORN_CMD_ARGS`, which holds flags;
8. the variable `TRICORN_CMD_ARGS`, which holds flags;
9. the command line, by its flag.

An empty variable counts as not set, and is warned about. `tricorn --print-config APP` shows every value with the place
it comes from. Settings are gunicorn's, with gunicorn's meaning, unless they are marked as tricorn's own.
"""

PARTS_INTRODUCTION = """\
## Parts of other settings

Each of these follows from a wider setting, which is the one to set. They are accepted wherever settings are, and stand
in no help. One that is given has that value, unless a stronger place sets the wider setting.
"""

INERT_INTRODUCTION = """\
## Without effect

These settings of gunicorn's are accepted, whatever they say:
"""

UNAVAILABLE_INTRODUCTION = """\
## Not available

These settings of gunicorn's are not available in this version. They are refused, or left out with a warning
(`unavailable`):
"""

FORMS = {
    Integer: "a whole number",
    WorkerCount: "`auto`, or a whole number",
    Seconds: "a number of seconds",
    Bytes: "a number of bytes, or one with a suffix: `512K`, `2M`, `1G`",
    Umask: "a number; octal if it begins with 0",
    Boolean: "`true` or `false`",
    Addresses: "addresses, separated by commas; in a file a text or a list of texts",
    Doors: "addresses, separated by commas; in a file a text or a list of texts",
    CertReqs: "0, 1 or 2; or `none`, `optional`, `required`",
    EnvAssignments: "`KEY=VALUE` texts; in a file a list of them",
    StatsdHost: "`HOST`, `HOST:PORT` or `unix://PATH`",
    SyslogAddress: "`udp://HOST:PORT`, `tcp://HOST:PORT` or `unix://PATH`, which may end with `#dgram` or `#stream`",
    Networks: "addresses and networks, separated by commas, or `*`",
    Text: "a text",
    OptionalText: "a text; empty for none",
    Milliseconds: "milliseconds such as `500-3000` or `1000`; empty for none",
    UrlPath: "a path that begins with /",
    HeaderValues: "a dict; in a variable `NAME=value,NAME=value`",
    Dictionary: "a dict; in a variable JSON text of one",
    ClassName: "a name, or in a file a class",
    User: "a name or a number",
    Group: "a name or a number",
    HeaderFields: "`NAME:VALUE` texts; in a file a list of them or a dict",
    ServerName: "a text, `true` or `false`",
    OffloadTargets: "names such as `package.module:Class.method`, separated by commas; in a file a list as well",
    TextList: "texts, separated by commas; in a file a list as well",
    ProxyHeaders: "a list of names, or names separated by commas",
}

EXISTING: dict[Kind[Any], str] = {
    ExistingPath("DIR"): "a directory that exists",
    ExistingPath("FILE"): "a file that exists",
    ExistingPath("FILE#NAME"): "a file that exists, and perhaps the name of a section of it",
    ExistingPaths("FILES"): "files that exist, or patterns; in a file a list of them",
    ExistingPaths("FILE"): "files that exist; in a file a list of them",
    CertificateFiles("CERT[:KEY]"): "files that exist, a pair with a colon between; in a file a list of them",
    ExistingPaths("DIR"): "directories that exist; in a file a list of them",
}


def main() -> int:
    pages = {"reference/settings.md": render(), "migrate/flags.md": render_flags()}
    if sys.argv[1:] == ["--check"]:
        stale = [
            name for name, text in pages.items() if not (DOCS / name).exists() or (DOCS / name).read_text() != text
        ]
        for name in stale:
            print(f"docs/{name} is not what the records say: run python scripts/render_settings.py")
        return int(bool(stale))
    for name, text in pages.items():
        (DOCS / name).write_text(text)
    return 0


def render_flags() -> str:
    parts = [FLAGS_INTRODUCTION]
    for server in SERVERS:
        rows = [row for row in BORROWED if server in row.servers]
        lines = [f"| `{'` `'.join(row.flags.split())}` | {becomes(row.becomes)} |" for row in rows]
        same = " ".join(f"`{flag}`" for flag in SAME[server].split())
        parts.append(
            "\n".join((f"## {server}", "", f"The same: {same}.", "", "| Flag | Becomes |", "|---|---|", *lines, ""))
        )
    return "\n".join((*parts, VARIABLES, *renamed()))


def renamed() -> Iterator[str]:
    for server, names in NAMES.items():
        yield from (f"| `{server.upper()}_{name}` | `{flag}` |" for flag, name in names.items())
    yield f"| `{APPLICATION}` | the application |\n"


def becomes(what: Sets | Nothing | Refused | Ours) -> str:
    match what:
        case Sets(settings):
            return settings
        case Nothing(why):
            return f"no effect: {why}"
        case Refused(sentence):
            return f"*refused*: {sentence}"
        case Ours(note):
            return f"gunicorn's flag: {note}"


def render() -> str:
    parts = [INTRODUCTION]
    wholes = [setting for setting in SETTINGS if setting.part_of is None]
    sections = [(section, list(some)) for section, some in groupby(wholes, key=lambda setting: setting.section)]
    parts.append("\n".join(f"* [{section}](#{anchor(section)})" for section, _ in sections) + "\n")
    for section, settings in sections:
        parts.append(f"## {section}\n")
        parts += [render_setting(setting) for setting in settings]
    parts.append(PARTS_INTRODUCTION)
    parts += [render_setting(setting) for setting in SETTINGS if setting.part_of is not None]
    parts.append(INERT_INTRODUCTION)
    parts.append("".join(f"* `{record.name}`: {record.inert}\n" for record in UNAVAILABLE if record.inert))
    parts.append(UNAVAILABLE_INTRODUCTION)
    refused = [record.name for record in UNAVAILABLE if not (record.switch or record.inert)]
    silent = [record.name for record in UNAVAILABLE if record.switch]
    parts.append(wrapped(f"{listed(refused)}.") + "\n")
    parts.append(wrapped(f"These are of effect only with one of them, and are accepted: {listed(silent)}.") + "\n")
    return "\n".join(parts)


def listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def render_setting(setting: Setting[object]) -> str:
    called = f"Called as `{setting.name}({setting.kind.arguments})`." if isinstance(setting.kind, Hook) else ""
    text = " ".join(filter(None, (setting.help, called, setting.doc)))
    lines = [f"### {setting.name}", "", wrapped(text), ""]
    lines += [f"* {what}: {text}" for what, text in facts(setting) if text]
    return "\n".join(lines) + "\n"


def facts(setting: Setting[object]) -> Iterator[tuple[str, str]]:
    flags = ", ".join(f"`{flag}{operand(setting)}`" for flag in setting.flags)
    again = ", may be repeated" if setting.action is Action.APPEND else ""
    if setting.part_of is not None:
        whole = setting.part_of.whole
        yield "Part of", f"[`{whole}`](#{whole})"
    yield "Command line", flags + again if flags else "no flag"
    yield "Environment", ", ".join(f"`{name}`" for name in (setting.env, *setting.env_also))
    yield "Default", default(setting)
    yield "Value", form(setting.kind)
    yield "Since", setting.since
    yield "Whose", "tricorn's own" if setting.own else "gunicorn's"


def operand(setting: Setting[object]) -> str:
    return "" if setting.action in (Action.SET, Action.UNSET) else f" {setting.kind.metavar}"


def default(setting: Setting[object]) -> str:
    value = setting.default
    if setting.default_shown is not None:
        return setting.default_shown
    if isinstance(value, Mapping):
        return ", ".join(f"`{key}={part}`" for key, part in value.items()) or "none"
    if isinstance(value, tuple):
        return ", ".join(f"`{part}`" for part in value) or "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "none" if value in (None, "") else f"`{value}`"


def form(kind: Kind[object]) -> str:
    """What a value looks like, and its bounds."""
    if isinstance(kind, Choice):
        return ", ".join(f"`{choice}`" for choice in kind.choices)
    if isinstance(kind, Choices):
        return f"some of {', '.join(f'`{choice}`' for choice in kind.choices)}"
    if isinstance(kind, OrAuto):
        return f"{form(kind.kind)}, or `auto`"
    if isinstance(kind, Hook):
        return "a function, or its dotted name"
    text = EXISTING[kind] if isinstance(kind, ExistingPath | ExistingPaths) else FORMS[type(kind)]
    if isinstance(kind, Integer | Seconds | WorkerCount) and (kind.min or kind.max is not None):
        text += f", at least {kind.min}"
        text += f" and at most {kind.max}" if kind.max is not None else ""
    return text


def anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def wrapped(text: str) -> str:
    from textwrap import fill

    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
