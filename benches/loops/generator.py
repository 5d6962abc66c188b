"""WebSockets that are held open and idle, by the program tricorn-load on a core of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benches.harness.process import LOAD_CORE, ROOT, DidNotServe, pinned

BINARY = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "tricorn-load"
#: Seconds that ten thousand handshakes, or messages, may take.
PATIENCE = 120.0


def need() -> None:
    done = subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "tricorn-load"], cwd=ROOT)
    if done.returncode:
        sys.exit("tricorn-load, the load generator for WebSockets, does not compile")


def command(port: int | str, *options: str) -> list[str]:
    return [str(BINARY), str(port), *options]


class Held:
    """WebSockets that are open and idle."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.opened = self._said()

    def echo(self) -> dict[str, Any]:
        """A message on each of them."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._said()

    def _said(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        line = self.process.stdout.readline()
        if not line:
            raise DidNotServe(self.process.stderr.read().strip())
        seen = loads(line)
        if seen["errors"]:
            raise DidNotServe(f"with {seen['open']} open: {seen['errors']}")
        return seen


@contextmanager
def held(port: int, count: int, options: Sequence[str]) -> Iterator[Held]:
    """So many WebSockets, from when all are open to the end."""
    process = subprocess.Popen(
        command(port, "--idle", str(count), *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: pinned(LOAD_CORE),
    )
    try:
        yield Held(process)
    finally:
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def loads(line: str) -> dict[str, Any]:
    seen: dict[str, Any] = json.loads(line)
    return seen
