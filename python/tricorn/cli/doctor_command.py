"""`tricorn doctor`: what blocks a worker, or will. The first word says which."""

from __future__ import annotations

import sys
from collections.abc import Sequence

CHECK, SLOW = "check", "slow"

USAGE = """\
usage: tricorn doctor --pid PID [--native] [--seconds S] [--json]
       tricorn doctor check [--json] [--connect] [settings...] APP
       tricorn doctor slow [--route R] [--json] [--html FILE] [--speedscope FILE] [--collapsed FILE]

   --pid    what each thread of a running process does: tricorn doctor --pid PID --help
   check    what can be known of an application and its settings without load: tricorn doctor check --help
   slow     what the slow requests of a running server did: tricorn doctor slow --help
"""


def main(words: Sequence[str]) -> int:
    if words[:1] == [CHECK]:
        import tricorn.unpatched  # noqa: F401  (first of all: a configuration file may patch)
        from tricorn.cli import doctor_check

        return doctor_check.main(words[1:])
    if words[:1] == [SLOW]:
        from tricorn.cli import doctor_slow

        return doctor_slow.main(words[1:])
    asked = words[:1] in (["-h"], ["--help"])
    if asked or not words:
        (sys.stdout if asked else sys.stderr).write(USAGE)
        return 0 if asked else 2
    from tricorn.cli import doctor_look

    return doctor_look.main(words)
