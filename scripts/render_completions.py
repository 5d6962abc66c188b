"""Renders the shell completions, which `tricorn --completions SHELL` prints, from the records of the settings.

python scripts/render_completions.py           writes them
python scripts/render_completions.py --check   fails if a file is not what the records say
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tricorn.config.command_line import COMPLETIONS, SHELLS
from tricorn.config.lookups import ClassName, Group, User
from tricorn.config.registry import SETTINGS
from tricorn.config.setting import Action, Setting
from tricorn.config.validators import Choice

from scripts import rendered

_BY_LINE = "local IFS=$'\\n'; "
"""For bash: names of files may contain spaces."""


class _Flag(NamedTuple):
    names: tuple[str, ...]
    help: str
    takes: str
    """The kind of its operand: nothing, words, files, directories, users, groups or text."""
    words: tuple[str, ...] = ()
    repeated: bool = False


def _flags() -> Iterator[_Flag]:
    yield _Flag(("-h",), "Show the flags that are used most, and exit.", "nothing")
    yield _Flag(("--help",), "Show the flags that people set, and exit.", "nothing")
    yield _Flag(("--help-all",), "Show all flags, and exit.", "nothing")
    yield _Flag(("-v", "--version"), "Show the version and exit.", "nothing")
    yield _Flag(("--completions",), "Print the completions for a shell and exit.", "words", SHELLS)
    for setting in SETTINGS:
        if setting.flags and setting.part_of is None:
            takes, words = _operand(setting)
            yield _Flag(setting.flags, setting.help, takes, words, setting.action is Action.APPEND)


def _operand(setting: Setting[object]) -> tuple[str, tuple[str, ...]]:
    if setting.action in (Action.SET, Action.UNSET):
        return "nothing", ()
    match setting.kind:
        case Choice(words) | ClassName(words) if words:
            return "words", words
        case User():
            return "users", ()
        case Group():
            return "groups", ()
    takes = {"DIR": "directories", "FILE": "files", "FILE#NAME": "files", "FILES": "files", "CONFIG": "files"}
    return takes.get(setting.kind.metavar, "text"), ()


def _bash() -> str:
    cases = []
    for flag in _flags():
        action = {
            "words": f'COMPREPLY=($(compgen -W "{" ".join(flag.words)}" -- "$current"))',
            "files": _BY_LINE + 'COMPREPLY=($(compgen -f -- "$current"))',
            "directories": _BY_LINE + 'COMPREPLY=($(compgen -d -- "$current"))',
            "users": 'COMPREPLY=($(compgen -u -- "$current"))',
            "groups": 'COMPREPLY=($(compgen -g -- "$current"))',
            "text": "COMPREPLY=()",
        }.get(flag.takes)
        if action:
            cases.append(f"        {'|'.join(flag.names)}) {action}; return ;;")
    flags = " ".join(name for flag in _flags() for name in flag.names)
    return "\n".join(
        [
            "# tricorn's completions for bash, made by `tricorn --completions bash`",
            "_tricorn() {",
            '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
            '    if [ "$current" = "=" ]; then current=""; fi',
            '    if [ "$previous" = "=" ]; then previous="${COMP_WORDS[COMP_CWORD-2]}"; fi',
            '    case "$previous" in',
            *cases,
            "    esac",
            f'    COMPREPLY=($(compgen -W "{flags}" -- "$current"))',
            "}",
            "complete -o filenames -F _tricorn tricorn",
            "",
        ]
    )


def _zsh() -> str:
    lines = []
    for flag in _flags():
        operand = {
            "nothing": "",
            "words": f":value:({' '.join(flag.words)})",
            "files": ":file:_files",
            "directories": ":directory:_files -/",
            "users": ":user:_users",
            "groups": ":group:_groups",
            "text": ":value: ",
        }[flag.takes]
        text = _quoted_for_zsh(flag.help)
        others = " ".join(flag.names)
        for name in flag.names:
            before = "*" if flag.repeated else f"({others})"
            after = "=" if operand and name.startswith("--") else "+" if operand else ""
            lines.append(f"    '{before}{name}{after}[{text}]{operand}' \\")
    return "\n".join(
        [
            "#compdef tricorn",
            "# tricorn's completions for zsh, made by `tricorn --completions zsh`",
            "_arguments -s -S \\",
            *lines,
            "    ':application: '",
            "",
        ]
    )


def _quoted_for_zsh(text: str) -> str:
    for character in "\\[]:":
        text = text.replace(character, "\\" + character)
    return text.replace("'", "'\\''")


def _fish() -> str:
    lines = ["# tricorn's completions for fish, made by `tricorn --completions fish`"]
    for flag in _flags():
        parts = ["complete -c tricorn"]
        for name in flag.names:
            parts.append(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}")
        parts += {
            "nothing": [],
            "words": [f"-x -a '{' '.join(flag.words)}'"],
            "files": ["-r -F"],
            "directories": ["-x -a '(__fish_complete_directories)'"],
            "users": ["-x -a '(__fish_complete_users)'"],
            "groups": ["-x -a '(__fish_complete_groups)'"],
            "text": ["-x"],
        }[flag.takes]
        escaped = flag.help.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(" ".join([*parts, f"-d '{escaped}'"]))
    return "\n".join([*lines, ""])


SCRIPTS: dict[str, Callable[[], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def main() -> int:
    folder = Path(COMPLETIONS).relative_to(rendered.ROOT)
    files = {f"{folder}/tricorn.{shell}": SCRIPTS[shell]() for shell in SHELLS}
    return rendered.whole("scripts/render_completions.py", files)


if __name__ == "__main__":
    sys.exit(main())
