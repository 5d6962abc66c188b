"""`tricorn doctor`: finds what blocks a worker, or will. The first word selects the subcommand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

USAGE = """\
usage: tricorn doctor [PID | --pidfile FILE | -s SOCKET | -n NAME] [--since start|minute] [--watch [S]] [--json]
       tricorn doctor --pid PID [--native] [--seconds S] [--json]
       tricorn doctor check [--json] [--connect] [settings...] APP
       tricorn doctor profile [--seconds S] [--rate HZ] [--worker N] [--route R] [--format F] [-o FILE]
       tricorn doctor slow [--route R] [--json] [--html FILE] [--speedscope FILE] [--collapsed FILE]

   (none)   show what blocks the workers of a running server, and how to fix it
   --pid    show what each thread of a process does (tricorn doctor --pid PID --help)
   check    find problems in an application and its settings before deploying (tricorn doctor check --help)
   profile  sample where a running server spends its time (tricorn doctor profile --help)
   slow     show what made slow requests slow (tricorn doctor slow --help)
"""


def main(words: Sequence[str]) -> int:
    if words[:1] in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    command = COMMANDS.get(words[0]) if words else None
    if command is not None:
        return command(words[1:])
    if any(word in ("-p", "--pid") or word.startswith("--pid=") for word in words):
        return _look(words)
    from tricorn_tools.cli import doctor_live

    return doctor_live.main(words)


def _check(words: Sequence[str]) -> int:
    import tricorn.unpatched  # noqa: F401  (first of all: a configuration file may patch)
    from tricorn_tools.cli import doctor_check

    return doctor_check.main(words)


def _slow(words: Sequence[str]) -> int:
    from tricorn_tools.cli import doctor_slow

    return doctor_slow.main(words)


def _profile(words: Sequence[str]) -> int:
    from tricorn_tools.cli import doctor_profile

    return doctor_profile.main(words)


def _look(words: Sequence[str]) -> int:
    from tricorn_tools.cli import doctor_look

    return doctor_look.main(words)


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"check": _check, "profile": _profile, "slow": _slow}
"""Subcommands by the first word."""
