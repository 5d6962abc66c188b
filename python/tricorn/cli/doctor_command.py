"""`tricorn doctor`: what blocks a worker, or will. The first word says which."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

CHECK = "check"
LOOK = "tricorn.cli.doctor_look"
"""What looks at a running process, where it is there."""

USAGE = """\
usage: tricorn doctor check [--json] [--connect] [settings...] APP

  check    what can be known of an application and its settings without load: tricorn doctor check --help
"""


def main(words: Sequence[str]) -> int:
    if words[:1] == [CHECK]:
        import tricorn.unpatched  # noqa: F401  (first of all: a configuration file may patch)
        from tricorn.cli import doctor_check

        return doctor_check.main(words[1:])
    if find_spec(LOOK) is not None:
        status: int = import_module(LOOK).look(words)
        return status
    asked = bool({"-h", "--help"} & set(words))
    (sys.stdout if asked else sys.stderr).write(USAGE)
    return 0 if asked else 2
