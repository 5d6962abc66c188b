"""Names what requests spend their time in, by a profile of the running server (`tricorn doctor profile`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tricorn.record import Record

SECONDS = 2.0
LEAST = 0.05
"""Fraction of a request's time that is worth a line."""
MOST = 3
PACKAGES = "site-packages/"


class Place(Record):
    """Code in which requests spend a part of their time."""

    share: float
    name: str
    """A function of the application or of a library, and what it calls."""


def places(python: str, socket: str, seconds: float = SECONDS) -> list[Place]:
    """Profiles the server at this control socket, which is under load. Empty if tricorn-tools is not installed."""
    command = [python, "-m", "tricorn", "doctor", "profile", "-s", socket, "--seconds", f"{seconds:g}"]
    try:
        done = subprocess.run(
            [*command, "--format", "json"], capture_output=True, text=True, timeout=seconds + 30, check=False
        )
        found = json.loads(done.stdout) if done.returncode == 0 else {}
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []
    return from_profile(found)


def from_profile(profile: Mapping[str, Any]) -> list[Place]:
    """Sums the stacks of all requests by place, the longest first."""
    seconds: dict[str, float] = {}
    for owner in profile.get("owners", ()):
        if owner.get("of") == "request":
            for stack in owner["stacks"]:
                name = name_of(stack["frames"])
                seconds[name] = seconds.get(name, 0.0) + stack["seconds"]
    whole = sum(seconds.values())
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    return [Place(spent / whole, name) for name, spent in ranked[:MOST] if spent >= LEAST * whole]


def name_of(frames: Sequence[Mapping[str, Any]]) -> str:
    """Names the innermost library or function of the application, and the system call or lock that it waits in.

    `frames`: the innermost first. Names in brackets stand for code that is not Python's.
    """
    native = frames[0]["function"] if frames and str(frames[0]["file"]).startswith("[") else ""
    for frame in frames:
        file, function = str(frame["file"]), str(frame["function"])
        if file.startswith("["):
            continue
        if PACKAGES in file:
            place = file.rpartition(PACKAGES)[2].partition("/")[0].removesuffix(".py")
        elif "/lib/python" in file:
            continue  # the standard library, called by the next frame
        else:
            place = f"{function} ({Path(file).name}:{frame['line']})"
        return f"{place}: {native}" if native else place
    return native or "the server"
