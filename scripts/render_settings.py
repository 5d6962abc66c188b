"""Renders settings.md, flags.md and the table of from-uwsgi.md in docs from the records of python/tricorn/config.

python scripts/render_settings.py           writes the pages
python scripts/render_settings.py --check   fails if they are not what the records say
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tricorn.config import uwsgi
from tricorn.config.addresses import Addresses
from tricorn.config.borrowed import BORROWED, SAME, SERVERS, Nothing, Ours, Refused, Sets
from tricorn.config.borrowed_environment import APPLICATION, NAMES
from tricorn.config.collectors import StatsdHost, SyslogAddress
from tricorn.config.doors import Doors
from tricorn.config.header_fields import HeaderFields, ServerName
from tricorn.config.kinds import (
    Affinity,
    CertificateFiles,
    CertReqs,
    Codings,
    HttpProtocols,
    MediaTypes,
    OffloadTargets,
    ProxyHeaders,
    WarmupTargets,
)
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
from tricorn.config.static_files import CacheControl, IndexFile, SendfileRoots, StaticMap
from tricorn.config.unavailable import UNAVAILABLE
from tricorn.config.validators import (
    Boolean,
    Bytes,
    CanarySize,
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
    Preloading,
    RisingNumbers,
    Seconds,
    Text,
    TextList,
    Umask,
    UrlPath,
    WorkerCount,
)

from scripts import rendered

FLAGS_INTRODUCTION = """\
# Flags of uvicorn, hypercorn and granian

<!-- Rendered by scripts/render_settings.py from python/tricorn/config/borrowed.py: change that. -->

tricorn accepts the command lines of these servers: `uvicorn main:app --host 0.0.0.0 --proxy-headers` becomes
`tricorn main:app --host 0.0.0.0 --proxy-headers`. The tables list all their flags (uvicorn 0.54, hypercorn 0.18,
granian 2.8). The names on the right are [settings](../reference/settings.md). Flags that are *refused* stop the start;
`--unavailable warn` ignores them with a warning. These flags cannot be abbreviated.

Some defaults differ. uvicorn writes an access log by default, tricorn only with `--access-log`. At shutdown uvicorn
waits for requests without a limit, tricorn for `graceful_timeout`.

The logger names of these servers, such as `uvicorn.access`, [work in tricorn
too](../reference/log-formats.md#loggers), in applications and in `--log-config` files.
"""

VARIABLES = """\
## Variables

As with these servers, each flag of uvicorn and granian has an environment variable: its name in capitals, prefixed with
`UVICORN_` or `GRANIAN_`. hypercorn has none.

* `UVICORN_TIMEOUT_KEEP_ALIVE=65` is `--timeout-keep-alive 65`.
* A switch is `true` or `false`: `UVICORN_ACCESS_LOG=false` is `--no-access-log`.
* Several values are separated by spaces, and paths by `:`, as in `UVICORN_RELOAD_DIRS=src:templates`.
* `UVICORN_WORKERS` takes precedence over `WEB_CONCURRENCY`. Configuration written for tricorn or gunicorn takes
  precedence over these variables: `[tool.tricorn]`, a configuration file, `TRICORN_WORKERS`, the command line.
* Empty variables are ignored, and so is `UVICORN_PORT=tcp://10.0.0.7:80`, which Kubernetes sets in every pod next to a
  Service named `uvicorn`.

The log lists the variables in use at the start, and `--print-config` shows their values. Some variables have a
different name:

| Variable | Flag |
|---|---|"""

INTRODUCTION = """\
# Settings

<!-- Rendered by scripts/render_settings.py from the records in python/tricorn/config/settings: change those. -->

A setting has the same name everywhere. Later sources take precedence over earlier ones:

1. its default;
2. a platform variable, such as `PORT` or `WEB_CONCURRENCY`;
3. [a variable of uvicorn or granian](../migrate/flags.md#variables), such as `UVICORN_PORT`;
4. the table `[tool.tricorn]` in `./pyproject.toml`;
5. the configuration file: the one given by `--config`, or else `./tricorn.conf.py` or `./gunicorn.conf.py`;
6. the variable `TRICORN_<NAME>`;
7. flags in the variable `GUNICORN_CMD_ARGS`;
8. flags in the variable `TRICORN_CMD_ARGS`;
9. the command line.

Empty variables are ignored with a warning. `tricorn --print-config APP` shows every value and its origin. Settings are
gunicorn's, with the same meaning, unless marked as tricorn's.
"""

PARTS_INTRODUCTION = """\
## Parts of other settings

The values of these settings follow from a more general one, which is usually the one to set. They are accepted in the
same places, but `--help` does not list them. An explicit value overrides the derived one, unless a source of higher
precedence sets the general setting.
"""

INERT_INTRODUCTION = """\
## Without effect

These gunicorn settings are accepted and ignored:
"""

UNAVAILABLE_INTRODUCTION = """\
## Not available

These gunicorn settings are not supported in this version. They stop the start, or are ignored with a warning
(`unavailable`):
"""

FORMS = {
    Integer: "integer",
    WorkerCount: "`auto`, or an integer",
    Seconds: "seconds",
    Bytes: "bytes, or a number with a suffix: `512K`, `2M`, `1G`",
    Umask: "integer; octal if it starts with 0",
    Boolean: "`true` or `false`",
    CanarySize: "integer, or a share such as `10%`",
    Preloading: "`true`, `false` or `mold`",
    Addresses: "addresses, comma-separated; in a file a string or a list",
    Doors: "addresses, comma-separated; in a file a string or a list",
    CertReqs: "0, 1 or 2; or `none`, `optional`, `required`",
    EnvAssignments: "`KEY=VALUE`; in a file a list",
    StatsdHost: "`HOST`, `HOST:PORT` or `unix://PATH`",
    SyslogAddress: "`udp://HOST:PORT`, `tcp://HOST:PORT` or `unix://PATH`, optionally with `#dgram` or `#stream`",
    Networks: "addresses and networks, comma-separated, or `*`",
    Text: "string",
    OptionalText: "string; empty: none",
    Milliseconds: "milliseconds, such as `500-3000` or `1000`; empty: none",
    UrlPath: "path starting with /",
    HeaderValues: "dict; in a variable `NAME=value,NAME=value`",
    Dictionary: "dict; in a variable a JSON object",
    ClassName: "name; in a file also a class",
    User: "name or number",
    Group: "name or number",
    HeaderFields: "`NAME:VALUE`; in a file a list or a dict",
    ServerName: "string, `true` or `false`",
    OffloadTargets: "names such as `package.module:Class.method`, comma-separated; in a file also a list",
    RisingNumbers: "integers that rise, comma-separated; in a file also a list",
    TextList: "strings, comma-separated; in a file also a list",
    Affinity: "`auto`, `off`, or some of `mcp`, `socketio`, `header:NAME`, `cookie:NAME`, `query:NAME` and `peer`, "
    "comma-separated; in a file also a list",
    HttpProtocols: "`h1`, `h2`, or both, comma-separated; in a file also a list",
    Codings: "`on`, `off`, or some of `zstd`, `br` and `gzip`, comma-separated; in a file also a list",
    MediaTypes: "media types such as `text/html`, `text/*` or `*+json`, comma-separated; in a file also a list",
    ProxyHeaders: "names, comma-separated; in a file also a list",
    WarmupTargets: "paths and URLs, comma-separated; in a file also a list",
    CacheControl: "directives, comma-separated; empty: none",
    IndexFile: "name of a file; empty: none",
}

EXISTING: dict[Kind[Any], str] = {
    ExistingPath("DIR"): "existing directory",
    ExistingPath("FILE"): "existing file",
    ExistingPath("FILE#NAME"): "existing file, optionally with the name of a section",
    ExistingPaths("FILES"): "existing files, or patterns; in a file a list",
    ExistingPaths("FILE"): "existing files; in a file a list",
    CertificateFiles("CERT[:KEY]"): "existing files, a pair separated by a colon; in a file a list",
    StaticMap(): "`PREFIX=DIR` with options behind commas; in a file a list or a dict",
    SendfileRoots(): "`DIR` or `PREFIX=DIR`; in a file a list",
    ExistingPaths("DIR"): "existing directories; in a file a list",
}


def main() -> int:
    pages = {"docs/reference/settings.md": render(), "docs/migrate/flags.md": render_flags()}
    script = "scripts/render_settings.py"
    part = rendered.main(uwsgi.PAGE, script, "python/tricorn/config/uwsgi.py", render_uwsgi())
    return max(part, rendered.whole(script, pages))


def render_uwsgi() -> str:
    parts = []
    for section, rows in uwsgi.SECTIONS.items():
        parts += [f"### {section}", "", "| uWSGI | tricorn |", "|---|---|"]
        parts += [f"| {' '.join(map(option, row.options.split()))} | {row.here} |" for row in rows]
        parts.append("")
    return "\n".join(parts)


def option(name: str) -> str:
    return f"`{name}…`" if name.endswith("-") else f"`{name}`"


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
    parts.append(
        wrapped(f"These have an effect only together with one of them, and are accepted: {listed(silent)}.") + "\n"
    )
    return "\n".join(parts)


def as_code(text: str) -> str:
    """Marks forms of addresses, which are no links."""
    return re.sub(r"(?<![`\w+])[a-z][a-z+]*://HOST:PORT", r"`\g<0>`", text)


def listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def render_setting(setting: Setting[object]) -> str:
    called = f"Called as `{setting.name}({setting.kind.arguments})`." if isinstance(setting.kind, Hook) else ""
    text = as_code(" ".join(filter(None, (setting.help, called, setting.doc))))
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
    yield "Type", form(setting.kind)
    yield "Since", setting.since
    yield "Origin", "tricorn" if setting.own else "gunicorn"


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
        return f"any of {', '.join(f'`{choice}`' for choice in kind.choices)}"
    if isinstance(kind, OrAuto):
        return f"{form(kind.kind)}, or `auto`"
    if isinstance(kind, Hook):
        return "function, or its dotted name"
    text = EXISTING[kind] if isinstance(kind, ExistingPath | ExistingPaths) else FORMS[type(kind)]
    if isinstance(kind, Integer | Seconds | WorkerCount) and (kind.min or kind.max is not None):
        text += f", at least {kind.min}"
        text += f" and at most {kind.max}" if kind.max is not None else ""
    return text


def anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-").replace("/", "")


def wrapped(text: str) -> str:
    from textwrap import fill

    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
