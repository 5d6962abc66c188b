"""A process that hangs in a known place, and what the doctor says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from tricorn_tools.doctor import engine

from tests.harness import until
from tests.harness.deadline import PATIENCE
from tests.harness.server import run

if TYPE_CHECKING:
    from typing_extensions import Self

Thread = Mapping[str, Any]


class Patient:
    """Runs `code` in a file, with the given interpreter. The line that it hangs in ends with `# here`."""

    def __init__(self, directory: Path, code: str, *arguments: str, python: str = sys.executable) -> None:
        self.file = directory / "patient.py"
        self.file.write_text(dedent(code))
        lines = self.file.read_text().splitlines()
        self.line = next((number for number, line in enumerate(lines, 1) if line.endswith("# here")), 0)
        self._command = [python, str(self.file), *arguments]

    def __enter__(self) -> Self:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._process = subprocess.Popen(self._command, env=environ, stdin=subprocess.DEVNULL)
        self.pid = self._process.pid
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def look(self, seconds: float = 0.1) -> Mapping[str, Any]:
        """By this process: an interpreter's start takes longer than a look, while the patient may compute."""
        report: Mapping[str, Any] = {"threads": []}
        with suppress(engine.DoctorError):
            report = engine.look(self.pid, seconds)
        assert self._process.poll() is None, "the patient has ended"
        return report

    def here(self, fits: Callable[[Thread], object] = bool, what: str = "") -> Thread:
        """The thread at that line, once `fits`: it takes a moment to get there, and a busy machine longer."""
        seen: list[Mapping[str, Any]] = []

        def found() -> Thread | None:
            seen[:] = [self.look()]
            at = (thread for thread in seen[0]["threads"] if self.is_here(thread))
            return next((thread for thread in at if fits(thread)), None)

        try:
            thread = until(found, what or "a thread at the line")
        except AssertionError as error:
            raise AssertionError(f"{error}; last seen: {json.dumps(seen, indent=1)}") from None
        assert thread is not None
        return thread

    def verdict(self, name: str) -> Thread:
        return self.here(lambda thread: thread["verdict"] == name, name)

    def computing(self, name: str) -> Thread:
        """The same for a thread that wants a processor. A machine that has none for it starves it, and that is told."""
        begin = time.monotonic()

        def fits(thread: Thread) -> bool:
            is_late = time.monotonic() - begin > PATIENCE / 3
            return thread["verdict"] == name or (is_late and thread["verdict"] == "STARVED")

        return self.here(fits, name)

    def runs(self, thread: Thread) -> bool:
        frame = thread["application"]
        return frame is not None and frame["file"] == str(self.file)

    def is_here(self, thread: Thread) -> bool:
        return self.runs(thread) and thread["application"]["line"] == self.line


def doctor(*words: str) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = run("doctor", *words)
    return done


def functions(thread: Thread) -> list[str]:
    """The native ones that are certain, innermost first."""
    return [frame["function"] for frame in thread["native"]["frames"] if frame["certain"] and frame["function"]]
