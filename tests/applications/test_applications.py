"""Applications that people run answer as under the server that they document, and their logs are as clean."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.applications.table import APPLICATIONS, Application
from tests.harness.deadline import PATIENCE, until
from tests.harness.server import free_port
from tests.harness.wire import Wire

ENVIRONMENTS = Path(os.environ["TRICORN_TEST_APPLICATIONS"])
HERE = Path(__file__).parent
PROGRAM = ("python", "program.py", "{port}")
LOOPS = ("asyncio", "uvloop")
START = 2 * PATIENCE
"""Some of these import a thousand modules."""

COMPLAINTS = re.compile(
    r"\b(ERROR|CRITICAL|Traceback|Exception)\b|Error handling request|never (retrieved|awaited)|was destroyed|Warning: "
)
CHANGING = re.compile(r"\d+|/tmp/\S*/")
"""What differs between two runs that complain of the same."""


class Visit(NamedTuple):
    seen: str
    complaints: list[str]
    status: int
    log: str


def run(name: str, command: tuple[str, ...], directory: Path) -> Visit:
    """Starts the application, visits it, stops it."""
    row, port = APPLICATIONS[name], free_port()
    folder = HERE / (row.folder or name)
    shutil.copytree(folder, directory, ignore=shutil.ignore_patterns("visit.py", "__pycache__"))
    programs = ENVIRONMENTS / name / "bin"
    environ = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(directory), **row.variables}
    with (directory / "log").open("w+b") as log:
        server = subprocess.Popen(
            [part.format(port=port) for part in command],
            executable=programs / command[0],
            cwd=directory,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            until(lambda: accepts(port) or server.poll() is not None, "the server accepts connections", within=START)
            seen = subprocess.run(
                [programs / "python", folder / "visit.py", str(port)],
                cwd=directory,
                env=environ | {"PYTHONPATH": str(HERE / "client")},
                capture_output=True,
                text=True,
                timeout=3 * PATIENCE,
                check=False,
            )
            server.send_signal(signal.SIGTERM)
            status = server.wait(PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        log.seek(0)
        text = log.read().decode(errors="replace")
    assert seen.returncode == 0, f"{seen.stdout}\n{seen.stderr}\nthe log:\n{text}"
    complaints = [CHANGING.sub("*", line) for line in text.splitlines() if COMPLAINTS.search(line)]
    return Visit(seen.stdout, complaints, status, text)


def accepts(port: int) -> bool:
    with suppress(OSError), Wire(("127.0.0.1", port)):
        return True
    return False


def here(row: Application, loop: str) -> tuple[str, ...]:
    return ("tricorn", "-b", "127.0.0.1:{port}", "--asgi-loop", loop, row.app)


@pytest.mark.timeout(15 * PATIENCE)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_it_answers_and_logs_as_under_the_documented_server(name: str, tmp_path: Path) -> None:
    row = APPLICATIONS[name]
    there = run(name, row.reference, tmp_path / "reference")
    for loop in LOOPS:
        visit = run(name, here(row, loop), tmp_path / loop)
        is_as_clean(visit, there, loop)
        assert visit.status == 0, f"{loop}; the log:\n{visit.log}"


@pytest.mark.timeout(15 * PATIENCE)
@pytest.mark.parametrize("name", [name for name, row in APPLICATIONS.items() if row.keeps_sessions])
def test_several_workers_keep_its_sessions(name: str, tmp_path: Path) -> None:
    row = APPLICATIONS[name]
    there = run(name, row.reference, tmp_path / "reference")
    visit = run(name, (*here(row, "asyncio"), "-w", "4"), tmp_path / "workers")
    assert "Requests of one session go to one worker" in visit.log
    assert visit.seen == there.seen, f"the log:\n{visit.log}"


@pytest.mark.timeout(15 * PATIENCE)
@pytest.mark.parametrize("name", [name for name, row in APPLICATIONS.items() if row.has_program])
def test_its_own_program_under_exec(name: str, tmp_path: Path) -> None:
    there = run(name, PROGRAM, tmp_path / "reference")
    visit = run(name, ("tricorn", "exec", *PROGRAM), tmp_path / "exec")
    assert "Uvicorn" not in visit.log
    is_as_clean(visit, there, "exec")
    assert visit.status == there.status, f"the log:\n{visit.log}"  # a loop of the program's own raises the signal again


def is_as_clean(visit: Visit, there: Visit, way: str) -> None:
    assert visit.seen == there.seen, f"{way}; the log:\n{visit.log}"
    more = [line for line in visit.complaints if line not in there.complaints]
    assert not more, f"{way}: {more}; the log:\n{visit.log}"
