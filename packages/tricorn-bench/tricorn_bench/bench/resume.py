"""Resuming an interrupted measurement: `--resume`."""

from __future__ import annotations

import shlex
from pathlib import Path

from tricorn_bench.bench import result as results
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.measure import Measured

SHORTENED = "Rounds had"
"""Prefix of the note about shortened rounds: it stays true for those that are kept."""


def kept(path: Path, application: str, load: str) -> Measured:
    """Raises BenchError if the result there is of another application or load."""
    if not path.exists():
        return Measured()
    found = results.read(path)
    if (found["application"], found["load"]) != (application, load):
        raise BenchError(
            f"{path} is of {found['application']} ({found['load']}) and cannot be resumed with {application} ({load}): "
            "choose another directory, or leave out --resume to write it anew."
        )
    commands = {one["name"]: shlex.split(one["command"]) for one in found["configurations"] if one["command"]}
    return Measured(
        cells=found["cells"],
        commands=commands,
        answer=found["answer"],
        theory=found["theory"],
        notes=[note for note in found["notes"] if note.startswith((SHORTENED, *commands))],
    )
