"""Pages of the documentation, and a run through one as its reader would make it.

A block of code whose first line is a comment with the name of a file is that file. A block of `console` is what a
terminal shows: a line with `$ ` is a command, and the lines below it are of its output, in their order. `…` stands for
any text, and in a line of its own for any lines. A command whose output has *Ready:* or ends with `…` alone goes on: it
is a server. What a block has before its first command is what the server's terminal then shows. `^C` ends the server.

Everything else of a page is to be read. Blocks of `sh` name what needs another machine, or root, and are not run.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.harness.deadline import PATIENCE, until
from tests.harness.server import Lines, free_ports

if TYPE_CHECKING:
    from typing_extensions import Self

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"

BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^(?:#|//|;) ([\w./-]+\.\w+)$")
PORTS = ("8000", "8001", "9000")
"""Those that pages use; a run has free ones in their place."""
FOLDER = "/srv/shop"
"""The directory of the reader in the output of pages; a run has one of its own in its place."""


class File(NamedTuple):
    path: str
    text: str


class Command(NamedTuple):
    words: str
    output: tuple[str, ...]

    @property
    def stays(self) -> bool:
        """It goes on, as a server does."""
        return any("Ready:" in line for line in self.output)


class Shown(NamedTuple):
    """What the terminal of the server shows."""

    lines: tuple[str, ...]


class Interrupt(NamedTuple):
    pass


Step = File | Command | Shown | Interrupt


ROOMS = ("get-started", "guides", "diagnose", "migrate", "frameworks", "deploying", "reference")
"""Folders whose pages are gone through. What the others show is proved by tests of the features they are about."""


def pages() -> list[str]:
    """The names of pages that have commands to be run."""
    found = sorted(path.relative_to(DOCS).as_posix() for room in ROOMS for path in (DOCS / room).rglob("*.md"))
    return [name for name in found if any(isinstance(step, Command) for step in steps((DOCS / name).read_text()))]


def steps(text: str) -> list[Step]:
    """What there is to do on a page."""
    found: list[Step] = []
    for block in BLOCK.finditer(text):
        indent, language, body = block.groups()
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        named = NAMED.match(body.partition("\n")[0])
        if language == "console":
            found += _terminal(body.splitlines())
        elif named:
            found.append(File(named[1], body))
    return found


def _terminal(lines: list[str]) -> Iterator[Step]:
    words: str | None = None
    output: list[str] = []

    def so_far() -> Iterator[Step]:
        if words is not None:
            yield Command(words, tuple(output))
        elif output:
            yield Shown(tuple(output))

    for line in lines:
        if line.startswith("$ "):
            yield from so_far()
            words, output = line[2:], []
        elif line == "^C":
            yield from so_far()
            yield Interrupt()
            words, output = None, []
        elif words is not None and words.endswith("\\"):
            words = words[:-1].rstrip() + " " + line.lstrip("> ")
        elif line:
            output.append(line)
    yield from so_far()


class Run:
    """A context manager: a directory in which the steps of a page are made; afterwards nothing runs any more."""

    def __init__(self, *, log_format: str = "pretty") -> None:
        self._log_format = log_format

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="tricorn-page-"))
        self.directory.chmod(0o755)  # for the user as which nginx's workers run
        self._ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
        self._server: subprocess.Popen[bytes] | None = None
        self.log: Lines | None = None
        self._seen = 0
        self._is_shown = True
        self.shown: list[tuple[str, str]] = []
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._end(signal.SIGTERM)
        finally:
            for pid in self._left():
                os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.directory, ignore_errors=True)

    def _left(self) -> list[int]:
        """Processes that a command has left: they are where the page's files are."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if Path(os.readlink(process / "cwd")).is_relative_to(self.directory):
                    found.append(int(process.name))
            except OSError:
                pass  # it has ended, or is another user's
        return found

    def make(self, step: Step) -> None:
        match step:
            case File(path, text):
                target = self.directory / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(self.here(text))
            case Command(words, output) if step.stays:
                self._start(self.here(words), output)
            case Command(words, output):
                self._mark()
                self._call(self.here(words), output)
            case Shown(lines):
                before = self._seen
                self._wait(lines)
                self._seen, self._is_shown = before, True
            case Interrupt():
                self._end(signal.SIGINT)

    def _mark(self) -> None:
        """From the first command after a block of its lines on: there the next such block is looked for."""
        if self.log is not None and self._is_shown:
            self._seen, self._is_shown = len(self.log.lines), False

    def here(self, text: str) -> str:
        text = text.replace(FOLDER, str(self.directory))
        return re.sub(rf"\b({'|'.join(PORTS)})\b", lambda port: self._ports[port[1]], text)

    def _keep(self, line: str, real: str) -> None:
        """Notes what came for a line of the page, as the page would show it."""
        real = real.rstrip().replace(str(self.directory), FOLDER)
        for port, here in self._ports.items():
            real = re.sub(rf"\b{here}\b", port, real)
        clock = re.match(r"\d\d:\d\d:\d\d ", line)
        if clock:
            real = clock[0] + real[clock.end() :]
        self.shown.append((line, real))

    @property
    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRICORN", "GUNICORN"))}
        return kept | {
            "PATH": f"{Path(sys.executable).parent}:{kept.get('PATH', '')}",
            "TRICORN_CONTROL_SOCKET": str(self.directory / ".control"),
            "UVICORN_PORT": self._ports["8000"],  # weaker than all that a page says
            "TRICORN_LOG_FORMAT": self._log_format,
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _start(self, words: str, output: tuple[str, ...]) -> None:
        self._end(signal.SIGTERM)
        self._server = subprocess.Popen(
            ["bash", "-c", words],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._server.stdout is not None
        self.log, self._seen, self._is_shown = Lines(self._server.stdout), 0, True
        self._wait(output)

    def _wait(self, lines: tuple[str, ...]) -> None:
        """Until the server has written these, one after another."""
        log = self.log
        assert log is not None, f"no server runs that could show {lines[0]!r}"
        for line in lines:
            if line == "…":
                continue
            pattern = as_pattern(self.here(line))

            def came(pattern: re.Pattern[str] = pattern, line: str = line) -> bool:
                while self._seen < len(log.lines):
                    self._seen += 1
                    if pattern.search(log.lines[self._seen - 1]):
                        self._keep(line, log.lines[self._seen - 1])
                        return True
                return False

            try:
                until(came, f"the server shows {line!r}")
            except AssertionError as missing:
                raise AssertionError(f"{missing}; what it shows:\n{log.text}") from None

    def _call(self, words: str, output: tuple[str, ...]) -> None:
        # Into a file: a pipe would not end before what the command has left behind does.
        with tempfile.TemporaryFile() as output_file:
            done = subprocess.run(
                ["bash", "-c", words],
                cwd=self.directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output_file,
                stderr=subprocess.STDOUT,
                timeout=2 * PATIENCE,  # some measure
            )
            output_file.seek(0)
            text = output_file.read().decode(errors="replace").replace("\r", "")
        problem = f"$ {words}\n{text}\n"
        log = f"the server shows:\n{self.log.text}" if self.log is not None else ""
        assert done.returncode == 0, f"{problem}ended with status {done.returncode}\n{log}"
        rest = text.splitlines()
        for line in output:
            if line == "…":
                continue
            pattern = as_pattern(self.here(line))
            place = next((number for number, each in enumerate(rest) if pattern.search(each)), None)
            assert place is not None, f"{problem}does not show {line!r}\n{log}"
            self._keep(line, rest[place])
            rest = rest[place + 1 :]

    def _end(self, how: signal.Signals) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        os.kill(server.pid, how)
        try:
            server.wait(PATIENCE)
        finally:
            try:
                os.killpg(server.pid, signal.SIGKILL)  # what it has left
            except ProcessLookupError:
                pass
            server.wait()


REQUESTS = r" It delayed \d+ other requests? \(\d+\.\d+ request-seconds\)\."
VARIES = {
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}\]": None,
    r"\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}": None,
    r"\d\d:\d\d:\d\d": None,
    r"\[\d+\]": None,
    r"pid: ?\d+": None,
    r"Thread \d+": None,
    r"\d+\.\d request-seconds: (?:once|\d+ times)": None,
    r"\(\d+\)$": None,
    REQUESTS: f"(?:{REQUESTS})?",
    r"for (?:another )?\d+ ms": None,
    r"\b\d+(?:\.\d+)? (?:s|ms|%|MiB|seconds)(?!\w)": None,
    r"curl/[\d.]+": None,
    r"(?<![\d.])\d+\.\d+\.\d+(?![\d.])": None,
}
"""Parts of a line that differ from run to run (times, process ids, sizes, versions), and what may come instead if that
is not the same shape."""


FIGURES = r"\d[\d.@]*"
"""Numbers in rows of tables (`tricorn ctl`) and in `name=number`: any others may come instead."""


def as_pattern(line: str) -> re.Pattern[str]:
    """Returns the pattern of a line of output. `…` in it stands for any text."""
    is_row = re.search(r"\S  +\S.*\S  +\S|\w=\d", line) is not None and not re.match(r"\d\d:\d\d:\d\d ", line)
    varies = {**VARIES, FIGURES: None, " +": None} if is_row else VARIES
    parts: list[str] = []
    end = 0
    for part in re.finditer("|".join(varies), line):
        shape = next(other or each for each, other in varies.items() if re.fullmatch(each, part[0]))
        parts += [re.escape(line[end : part.start()]), shape]
        end = part.end()
    parts.append(re.escape(line[end:]))
    return re.compile("".join(parts).replace(re.escape("…"), ".*") + ("" if line.endswith("…") else r"\s*$"))


def updated(text: str, shown: list[tuple[str, str]]) -> str:
    """Returns a page with real output in place of lines with `…`. `shown` pairs its lines with those that came."""
    position = 0
    for line, real in shown:
        found = re.compile(rf"^( *){re.escape(line)}$", re.MULTILINE).search(text, position)
        if found is None:
            continue
        new = found[1] + real if "…" in line else found[0]
        text = text[: found.start()] + new + text[found.end() :]
        position = found.start() + len(new)
    return text
