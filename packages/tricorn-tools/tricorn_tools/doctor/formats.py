"""Formats of weighted stacks for other programs: collapsed stacks, and speedscope's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tricorn import __version__
from tricorn_tools.doctor.stacks import Frame, Stack, name

Json = dict[str, object]


def collapsed(stacks: Iterable[tuple[str, Stack, float]]) -> str:
    """Returns collapsed stacks, as for flamegraph.pl: a line for each, with its owner and its microseconds."""
    lines = []
    for owner, stack, seconds in stacks:
        frames = (owner, *map(name, stack))
        lines.append(f"{';'.join(frame.replace(';', ':') for frame in frames)} {round(seconds * 1e6)}\n")
    return "".join(lines)


def speedscope(title: str, owners: Iterable[tuple[str, Sequence[tuple[Stack, float]]]]) -> Json:
    """Returns a profile for each owner of stacks (https://www.speedscope.app/file-format-schema.json)."""
    numbers: dict[Frame, int] = {}
    profiles: list[Json] = []
    for owner, stacks in owners:
        samples = [[numbers.setdefault(frame, len(numbers)) for frame in stack] for stack, _ in stacks]
        weights = [seconds for _, seconds in stacks]
        if samples:
            sampled = {"type": "sampled", "name": owner, "unit": "seconds", "startValue": 0}
            profiles.append({**sampled, "endValue": sum(weights), "samples": samples, "weights": weights})
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"tricorn {__version__}",
        "name": title,
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(each) for each in numbers]},
        "profiles": profiles,
    }


def _frame(frame: Frame) -> Json:
    if not frame.is_python:
        return {"name": name(frame)}
    return {"name": frame.function, "file": frame.file, "line": frame.line}
