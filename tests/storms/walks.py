"""Millions of walks of frames in processes that change meanwhile:  python -m tests.storms.walks --walks 10000000

A process for each interpreter that is found, one after another, is walked from outside; and, where its environment has
tricorn (`.venvs/3.X`, which scripts/test_pythons makes, and the one that runs this), another walks itself. What
they run is tests/integration/doctor/changing.py. A process that ends, and one that says nothing any more, fail.
"""

from __future__ import annotations

import argparse
import json
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from tricorn import _core

from tests.harness.pythons import MINORS, interpreter

ROOT = Path(__file__).parents[2]
CHANGING = ROOT / "tests/integration/doctor/changing.py"
TURN = 3.0
PATIENCE = 60.0
"""Seconds within which a process has told of another second of its own walks: the machine may have other work."""


class Walked:
    """One process, and what was read in it."""

    def __init__(self, name: str, python: str, *arguments: str) -> None:
        self.name = name
        self.made = self.discarded = self.frames = 0
        out = subprocess.PIPE if arguments else subprocess.DEVNULL
        self.process = subprocess.Popen([python, str(CHANGING), *arguments], stdout=out, stdin=subprocess.DEVNULL)
        self.told = time.monotonic()

    @property
    def is_inside(self) -> bool:
        return self.process.stdout is not None

    def add(self, made: int, discarded: int, frames: int) -> None:
        self.made, self.discarded, self.frames = self.made + made, self.discarded + discarded, self.frames + frames

    def turn(self) -> None:
        """Raises AssertionError if the process has ended or hangs."""
        ended = self.process.poll()
        assert ended is None, f"{self.name} has ended: {ended}"
        if self.process.stdout is None:
            made, discarded, _, frames = _core.doctor_walk(self.process.pid, TURN)
            self.add(made, discarded, frames)
            return
        for line in lines_of(self.process.stdout):
            found = json.loads(line)
            self.add(found["made"], found["discarded"], found["frames"])
            self.told = time.monotonic()
        assert time.monotonic() - self.told < PATIENCE, f"{self.name} says nothing any more"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __str__(self) -> str:
        share = self.discarded / self.made if self.made else 0.0
        return f"{self.name}: {self.made:,} walks, {share:.1%} discarded, {self.frames:,} frames"


def lines_of(stream: IO[bytes]) -> list[bytes]:
    """Whole lines that are there now."""
    found = []
    while select.select([stream], [], [], 0)[0] and (line := stream.readline()):
        found.append(line)
    return found


def plan(minors: list[int]) -> list[tuple[str, list[str]]]:
    found = []
    for minor in minors:
        own = ROOT / f".venvs/3.{minor}/bin/python"
        python = str(own) if own.exists() else interpreter(minor)
        if python is None:
            print(f"3.{minor}: not found here")
            continue
        found.append((f"3.{minor}", [python]))
        if subprocess.run([python, "-c", "import tricorn._core"], capture_output=True, check=False).returncode == 0:
            found.append((f"3.{minor} from inside", [python, "--inside"]))
    return found


def walk(name: str, python: str, arguments: list[str], walks: int, seconds: float) -> Walked:
    """Until so many walks were made, or the time is over."""
    begin, told = time.monotonic(), 0.0
    walked = Walked(name, python, *arguments)
    try:
        if not walked.is_inside:
            until_readable(walked.process.pid)
        while walked.made < walks and time.monotonic() - begin < seconds:
            walked.turn()
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{told - begin:6.0f} s  {walked}", flush=True)
        return walked
    finally:
        walked.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storms.walks", description=__doc__)
    parser.add_argument("--walks", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=4 * 3600.0, help="the most that it may take")
    parser.add_argument("--minors", default=",".join(map(str, MINORS)), help="of CPython 3, comma separated")
    arguments = parser.parse_args()
    begin = time.monotonic()
    several = plan([int(minor) for minor in arguments.minors.split(",")])
    assert several, "no interpreter was found"
    share = -(-arguments.walks // len(several)), arguments.seconds / len(several)
    total = 0
    for name, (python, *more) in several:
        walked = walk(name, python, more, *share)
        print(f"{walked}; it lived to the end", flush=True)
        assert walked.frames > walked.made, "a thread has a frame or two"
        total += walked.made
    print(f"{total:,} walks in {time.monotonic() - begin:.0f} s")
    return 0 if total >= arguments.walks else 1


def until_readable(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if _core.doctor_walk(pid, 0.05)[3]:
                return
        except (ValueError, PermissionError):
            pass  # the program is not there yet
        assert time.monotonic() < deadline, f"{pid} cannot be read"
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
