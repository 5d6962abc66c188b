"""Renders docs/settings.md from the records in python/tricorn/config/settings.

python scripts/render_settings.py           writes the page
python scripts/render_settings.py --check   fails if it is not what the records say
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from tricorn.config.lookups import (
    ClassName,
    Dictionary,
    FilesOrPatterns,
    Group,
    Hook,
    OptionalDirectory,
    OptionalFile,
    PostRequestHook,
    User,
)
from tricorn.config.registry import SETTINGS
from tricorn.config.setting import Action, Setting
from tricorn.config.unavailable import UNAVAILABLE
from tricorn.config.validators import (
    Addresses,
    AutoOrBoolean,
    AutoOrInteger,
    Boolean,
    Bytes,
    Choice,
    EnvAssignments,
    HeaderValues,
    Integer,
    Kind,
    Networks,
    OptionalText,
    Seconds,
    Text,
    TextList,
    Umask,
    UrlPath,
)

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"

INTRODUCTION = """\
# Settings

<!-- Rendered by scripts/render_settings.py from the records in python/tricorn/config/settings: change those. -->

Every setting has one name, and can be given in these places. What stands further down wins:

1. its default;
2. a variable that platforms set, such as `PORT` or `WEB_CONCURRENCY`;
3. the table `[tool.tricorn]` of `./pyproject.toml`, by its name;
4. the configuration file, by its name: the file of `--config`, or else `./tricorn.conf.py` or `./gunicorn.conf.py`;
5. the variable `TRICORN_<NAME>`;
6. the variable `GUNICORN_CMD_ARGS`, which holds flags;
7. the variable `TRICORN_CMD_ARGS`, which holds flags;
8. the command line, by its flag.

An empty variable counts as not set, and is warned about. `tricorn --print-config APP` shows every value with the place
it comes from. Settings are gunicorn's, with gunicorn's meaning, unless they are marked as tricorn's own.
"""

UNAVAILABLE_INTRODUCTION = """\
## Not available

These settings of gunicorn's are not available in this version. They are refused and never ignored:
"""

FORMS = {
    Integer: "a whole number",
    AutoOrInteger: "a whole number, or `auto`",
    AutoOrBoolean: "`auto`, `on` or `off`",
    Seconds: "a number of seconds",
    Bytes: "a number of bytes, or one with a suffix: `512K`, `2M`, `1G`",
    Umask: "a number; octal if it begins with 0",
    Boolean: "`true` or `false`",
    Addresses: "addresses, separated by commas; in a file a text or a list of texts",
    EnvAssignments: "`KEY=VALUE` texts; in a file a list of them",
    Networks: "addresses and networks, separated by commas, or `*`",
    Text: "a text",
    OptionalText: "a text; empty for none",
    UrlPath: "a path that begins with /",
    HeaderValues: "a dict; in a variable `NAME=value,NAME=value`",
    Dictionary: "a dict; in a variable JSON text of one",
    ClassName: "a name, or in a file a class",
    User: "a name or a number",
    Group: "a name or a number",
    OptionalDirectory: "a directory that exists",
    OptionalFile: "a file that exists",
    FilesOrPatterns: "files that exist, or patterns; in a file a list of them",
    TextList: "texts, separated by commas; in a file a list as well",
}


def main() -> int:
    page = render()
    if sys.argv[1:] == ["--check"]:
        if PAGE.exists() and PAGE.read_text() == page:
            return 0
        print("docs/settings.md is not what the records say: run python scripts/render_settings.py")
        return 1
    PAGE.write_text(page)
    return 0


def render() -> str:
    parts = [INTRODUCTION]
    sections = [(section, list(some)) for section, some in groupby(SETTINGS, key=lambda setting: setting.section)]
    parts.append("\n".join(f"* [{section}](#{anchor(section)})" for section, _ in sections) + "\n")
    for section, settings in sections:
        parts.append(f"## {section}\n")
        parts += [render_setting(setting) for setting in settings]
    parts.append(UNAVAILABLE_INTRODUCTION)
    parts.append(wrapped(", ".join(f"`{record.name}`" for record in UNAVAILABLE) + ".") + "\n")
    return "\n".join(parts)


def render_setting(setting: Setting[object]) -> str:
    lines = [f"### {setting.name}", "", wrapped(f"{setting.help} {setting.doc}".strip()), ""]
    lines += [f"* {what}: {text}" for what, text in facts(setting) if text]
    return "\n".join(lines) + "\n"


def facts(setting: Setting[object]) -> Iterator[tuple[str, str]]:
    flags = ", ".join(f"`{flag}{operand(setting)}`" for flag in setting.flags)
    again = ", may be repeated" if setting.action is Action.APPEND else ""
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
    if isinstance(kind, Hook | PostRequestHook):
        return "a function, or its dotted name"
    text = FORMS[type(kind)]
    if isinstance(kind, Integer | Seconds) and (kind.min or kind.max is not None):
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
