"""Runs mistakes of a first day under tricorn and its peers, and renders docs/internals/first-contact.md from it.

    python -m benches.render.first_contact [--peers .venvs/bench]

Each runs on a terminal of 24 lines and 80 columns. A server that goes on is interrupted after `LONGEST` seconds.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = "docs/internals/first-contact.md"
LONGEST = 25.0
"""Seconds after which a server is interrupted."""
SETTLED = 1.0
"""Seconds in which what follows the last line may come."""
SCREEN = 24
"""Lines of a terminal."""
PEERS = ("uvicorn", "granian", "gunicorn")

FILES: Mapping[str, str] = {
    "main.py": "async def app(scope, receive, send):\n    assert scope['type'] == 'http'\n",
    "imports.py": "import no_such_package\n\n\nasync def app(scope, receive, send): ...\n",
    "raises.py": "def settings():\n    return {}['SECRET_KEY']\n\n\nKEY = settings()\n\n\n"
    "async def app(scope, receive, send): ...\n",
    "syntax.py": "async def app(scope, receive, send):\n    return [\n",
    "conf.py": "wrokers = 2\n",
}


class Situation(NamedTuple):
    title: str
    says: str
    """A pattern of the sentence that names the mistake, in whatever words."""
    next: str
    """What tricorn's screen must say of the next step."""
    tricorn: Sequence[str]
    uvicorn: Sequence[str] | None = None
    granian: Sequence[str] | None = None
    gunicorn: Sequence[str] | None = None
    busy: bool = False
    """Another process listens on the port."""
    until: str | None = None
    """What a server says last that serves; it is then interrupted."""
    status: int = 1
    """tricorn's exit status."""


def of_module(title: str, app: str, says: str, next_: str, *, workers: bool = True, status: int = 3) -> Situation:
    """One that an application's name makes."""
    several = {"tricorn": "-w 4", "uvicorn": "--workers 4", "granian": "--workers 4", "gunicorn": "-w 4"}
    words = {name: [*(text.split() if workers else ()), "{bind}", app] for name, text in several.items()}
    return Situation(title, says, next_, **words, status=status)  # type: ignore[arg-type]


SERVES = r"Ready: |startup complete|Started worker"

SITUATIONS: Sequence[Situation] = (
    of_module(
        "A module that does not exist",
        "nope:app",
        r"no module named 'nope'|import module \W?nope",
        "Check the name, chdir and pythonpath",
    ),
    of_module(
        "A package that is not installed", "imports:app", "Error: No module named 'no_such", "line 1, in <module>"
    ),
    of_module("An exception while the application is loaded", "raises:app", "KeyError: 'SECRET_KEY'", "line 2, in set"),
    of_module("A syntax error", "syntax:app", "SyntaxError: '\\[' was never closed|never closed", "line 2"),
    of_module(
        "A name that the module does not have",
        "main:ap",
        r"\bap\b.*(not found|attribute)|attribute .?ap\b",
        "did you mean 'main:app'",
        status=4,
    ),
    Situation(
        "No application",
        "module|argument|application",
        "tricorn MODULE:APPLICATION",
        ["{bind}"],
        ["{bind}"],
        ["{bind}"],
        ["{bind}"],
    ),
    Situation(
        "A port that is in use",
        "in use",
        r"\(kill \d+\).*--bind",
        ["{bind}", "main:app"],
        ["{bind}", "main:app"],
        ["{bind}", "main:app"],
        ["{bind}", "main:app"],
        busy=True,
    ),
    Situation(
        "A misspelled flag",
        "wrokers",
        "did you mean --workers",
        ["--wrokers", "2", "main:app"],
        ["--wrokers", "2", "main:app"],
        ["--wrokers", "2", "main:app"],
        ["--wrokers", "2", "main:app"],
        status=2,
    ),
    Situation(
        "An invalid value",
        "four",
        "expected a whole number",
        ["-w", "four", "main:app"],
        ["--workers", "four", "main:app"],
        ["--workers", "four", "main:app"],
        ["-w", "four", "main:app"],
        status=2,
    ),
    Situation(
        "A misspelled worker class",
        "asgii|uvicron",
        "did you mean",
        ["-k", "asgii", "{bind}", "main:app"],
        None,
        None,
        ["-k", "asgii", "{bind}", "main:app"],
    ),
    Situation(
        "A misspelled setting in the configuration file",
        "wrokers",
        "conf.py:1.*did you mean|did you mean",
        ["-c", "conf.py", "{bind}", "main:app"],
        None,
        None,
        ["-c", "conf.py", "-k", "uvicorn.workers.UvicornWorker", "{bind}", "main:app"],
        until=SERVES,
        status=0,
    ),
    Situation(
        "A user that does not exist",
        "nosuchuser",
        "--user|user",
        ["-u", "nosuchuser", "{bind}", "main:app"],
        None,
        None,
        ["-u", "nosuchuser", "{bind}", "main:app"],
    ),
    Situation(
        "All is well",
        "Ready: |running on |Listening at",
        "at http://",
        ["-w", "4", "{bind}", "main:app"],
        ["--workers", "4", "{bind}", "main:app"],
        ["--workers", "4", "{bind}", "main:app"],
        ["-w", "4", "-k", "uvicorn.workers.UvicornWorker", "{bind}", "main:app"],
        until=SERVES,
        status=0,
    ),
)


class Screen(NamedTuple):
    """What a command has printed."""

    lines: list[str]
    status: int | None
    """None: it went on, and was interrupted."""
    raw: bytes = b""

    def saying(self, pattern: str) -> list[str]:
        return [line for line in self.lines if re.search(pattern, line, re.IGNORECASE)]


def words_for(server: str, words: Sequence[str], port: int) -> list[str]:
    """The arguments, with an address in the server's own flags."""
    bind = {
        "tricorn": ["-b", f"127.0.0.1:{port}"],
        "gunicorn": ["-b", f"127.0.0.1:{port}"],
        "uvicorn": ["--port", str(port)],
        "granian": ["--interface", "asgi", "--port", str(port)],
    }[server]
    return [word for each in words for word in (bind if each == "{bind}" else [each])]


def show(
    command: Sequence[str], directory: Path, until: str | None, longest: float = LONGEST, *, colours: bool = False
) -> Screen:
    """Runs it on a terminal to its end, or until it has printed `until` or `longest` is over."""
    ours, theirs = pty.openpty()
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("TRICORN_", "GUNICORN_"))}
    environ |= {
        "NO_COLOR": "" if colours else "1",
        "TERM": "xterm",
        "COLUMNS": "80",
        "LINES": str(SCREEN),
        "PYTHONUNBUFFERED": "1",
    }
    process = subprocess.Popen(
        command, cwd=directory, env=environ, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    text, went_on, deadline = b"", False, time.monotonic() + longest
    try:
        while True:
            readable, _, _ = select.select([ours], [], [], max(0.0, min(0.2, deadline - time.monotonic())))
            try:
                piece = os.read(ours, 65_536) if readable else b""
            except OSError:  # EIO: the last process that had the terminal has closed it
                break
            text += piece
            is_there = until is not None and re.search(until, _plain(text)) is not None
            if time.monotonic() > deadline or is_there:
                went_on = True
                if not is_there:
                    break
                until, deadline = None, time.monotonic() + SETTLED  # other workers may say the same
            if not readable and process.poll() is not None:
                break
    finally:
        _end(process)
        os.close(ours)
    lines = [line.rstrip() for line in _plain(text).splitlines()]
    return Screen([line for line in lines if line], None if went_on else process.returncode, text)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole session, which is this process's own."""
    for sent in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
            break
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _plain(text: bytes) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode(errors="replace")).replace("\r\n", "\n")


@contextmanager
def scene(situation: Situation) -> Iterator[tuple[Path, int]]:
    """A directory with the files, and a port that is free, or in use if the situation wants that."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shop-")))
        for name, text in FILES.items():
            (directory / name).write_text(text)
        taken = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = taken.getsockname()[1]
        if not situation.busy:
            taken.close()
        yield directory, port


def run(server: str, executable: Sequence[str], situation: Situation) -> tuple[Screen, str] | None:
    """What it prints, and the command without its directory; None: the server has no such thing."""
    words = getattr(situation, server)
    if words is None:
        return None
    with scene(situation) as (directory, port):
        argv = words_for(server, words, port)
        screen = show([*executable, *argv], directory, situation.until)
        told = " ".join([server, *argv]).replace(str(port), "8000")
        lines = [_stable(line, directory, port) for line in screen.lines]
        return Screen(lines, screen.status), told


def _stable(line: str, directory: Path, port: int) -> str:
    """The same in each run: no port, no directory, no number of a process, no time."""
    line = line.replace(str(directory), "/srv/shop").replace(str(port), "8000")
    line = line.replace(str(ROOT), "/opt/tricorn")
    line = re.sub(r"^\d\d:\d\d:\d\d", "12:00:00", line)
    line = re.sub(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+\d{4}\]", "[2026-01-01 12:00:00 +0000]", line)
    line = re.sub(r"\(\d+\.\d s", "(0.3 s", line)
    return re.sub(r"(?i)(\[|\(|pid[: ]+|process \[|kill )\d+(?=[\]) ]|$)", r"\g<1>4711", line)


def render(executables: Mapping[str, Sequence[str]]) -> str:
    rows, sections = [], []
    for situation in SITUATIONS:
        print(situation.title, file=sys.stderr)
        found = {name: run(name, executables[name], situation) for name in ("tricorn", *PEERS) if name in executables}
        cells = [_cell(found.get(name), situation) for name in ("tricorn", *PEERS)]
        rows.append(f"| {situation.title} | {' | '.join(cells)} |")
        sections.append(_section(situation, found))
    head = "| | tricorn | uvicorn | granian | gunicorn |\n|---|---|---|---|---|"
    return "\n".join([head, *rows, "", *sections])


def _cell(found: tuple[Screen, str] | None, situation: Situation) -> str:
    if found is None:
        return "–"
    screen, _ = found
    count = len(screen.lines)
    parts = [f"{count} line" if count == 1 else f"{count} lines"]
    times = len(screen.saying(situation.says))
    if times != 1 and situation.until is None:
        parts.append(f"said {times} times" if times else "not said")
    if screen.status is None and situation.until is None:
        parts.append("goes on")
    return ", ".join(parts)


def _section(situation: Situation, found: Mapping[str, tuple[Screen, str] | None]) -> str:
    mine = found["tricorn"]
    assert mine is not None
    screen, told = mine
    lines = [f"## {situation.title}\n", "```console", f"$ {told}", *screen.lines, "```\n"]
    for name in PEERS:
        other = found.get(name)
        if other is not None:
            saying = other[0].saying(situation.says)
            sentence = saying[0 if situation.until else -1].strip(" │|") if saying else "(nothing that names it)"
            lines.append(f"* {name}: `{sentence[:160].replace('`', chr(39))}`")
    return "\n".join([*lines, ""])


INTRODUCTION = """\
# First contact

The output of tricorn and its peers for common mistakes on the first day, and for a normal start. Rendered by
`python -m benches.render.first_contact`, which runs each command on a terminal; do not edit it. {versions}.

Lines are those on the screen, without empty ones. *Said N times*: N lines name the mistake. *Goes on*: the server
does not exit, but keeps restarting its workers or waits, and was interrupted after {longest:g} seconds. *–*: does not
apply. A test makes sure that each output of tricorn fits on a screen, names the mistake once and says what to do.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=".venvs/bench", help="the environment in which the other servers are")
    peers = ROOT / parser.parse_args().peers / "bin"
    executables: dict[str, Sequence[str]] = {"tricorn": [sys.executable, "-m", "tricorn"]}
    for name in PEERS:
        if found := shutil.which(name, path=str(peers)):
            executables[name] = [found]
    versions = "; ".join(_version(executables[name]) for name in executables)
    page = INTRODUCTION.format(versions=versions, longest=LONGEST) + "\n" + render(executables)
    (ROOT / PAGE).write_text(page.rstrip() + "\n")
    return 0


def _version(command: Sequence[str]) -> str:
    shown = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return (shown.stdout or shown.stderr).strip().splitlines()[0].split(" with ")[0].removeprefix("Running ")


if __name__ == "__main__":
    sys.exit(main())
