"""One server under test: started, observed, stopped, and held to leaving nothing behind."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tricorn.errors import ConfigError
from tricorn.workers.registry import choose

from tests.harness import proc
from tests.harness.deadline import PATIENCE, until
from tests.harness.forkserver import Forked, Forkserver
from tests.harness.wire import Address, Reply, Wire

if TYPE_CHECKING:
    from typing_extensions import Self

APPS = Path(__file__).resolve().parent.parent / "apps"
COMMAND_VARIABLE = "TRICORN_TEST_SERVER"

# Running the suites against the server whose behaviour is promised keeps the suites honest.
REFERENCE = "gunicorn" in os.environ.get(COMMAND_VARIABLE, "")
OWN_OPTIONS = {
    "header_timeout",
    "body_timeout",
    "body_min_rate",
    "write_timeout",
    "body_buffer_size",
    "no_request_buffering",
    "response_buffering",
    "limit_request_body",
    "max_connections",
    "queue_limit",
    "queue_timeout",
    "queue_order",
    "max_concurrency",
    "no_handover",
    "no_green_drivers",
}

always_fresh = False
"""Tests of the start are on now: every server has an interpreter of its own."""

# Below the ports the kernel gives to outgoing connections: none of them takes one between choosing and binding.
PORTS = range(18000, 32000)
_places = itertools.count(os.getpid() * 1009)
"""Where this process looks for a port, far from its neighbours."""
_claims: deque[socket.socket] = deque()
CLAIMS = 64
"""How many ports of those found last no other process finds: a server takes a moment to bind its own."""


OWN_COMMAND = [sys.executable, "-m", "tricorn"]


def command() -> list[str]:
    given = os.environ.get(COMMAND_VARIABLE)
    return shlex.split(given) if given else OWN_COMMAND


def free_port() -> int:
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Different ones: each is held until all are found."""
    found: list[int] = []
    with ExitStack() as held:
        for place in itertools.islice(_places, len(PORTS)):
            port = PORTS[place % len(PORTS)]
            sock = held.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind(("127.0.0.1", port))
                _claim(port)
            except OSError:
                sock.close()
                continue
            found.append(port)
            if len(found) == count:
                return found
    raise AssertionError(f"no {count} free ports")


def _claim(port: int) -> None:
    """Raises OSError if another process has: a name of the abstract namespace has one owner (unix(7))."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0tricorn-tests-{port}")
    except OSError:
        claim.close()
        raise
    _claims.append(claim)
    if len(_claims) > CLAIMS:
        _claims.popleft().close()


def arguments(options: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as the command line has them: `keep_alive=2` is `--keep-alive 2`, True is a bare flag."""
    line: list[str] = []
    for name, value in options.items():
        if REFERENCE and name in OWN_OPTIONS:
            continue
        flag = "--" + name.replace("_", "-")
        for each in value if isinstance(value, (list, tuple)) else [value]:
            line += [flag] if each is True else [flag, str(each)]
    return line


def alias_of(worker_class: str) -> str:
    """The class that the server will choose; empty if it will refuse the name."""
    try:
        return choose(worker_class, 1)
    except ConfigError:
        return ""


TWINS = {"asgi": "asgi", "tornado": "tornado_twins", "aiohttp": "aiohttp_twins"}
"""Where the fixture applications of an interface are; a package named like tornado would stand for it."""


def twin(app: str, worker_class: str) -> str:
    """The application of this name for the interface that the class calls."""
    room, name = TWINS.get(worker_class), app.partition(":")[0]
    return f"{room}.{app}" if room and (APPS / room / f"{name}.py").exists() else app


class Lines:
    """A stream of the process, read by a thread into lines one can wait for."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.lines: list[str] = []
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._stream:
            self.lines.append(line.decode(errors="replace").rstrip("\n"))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def matching(self, pattern: str) -> list[re.Match[str]]:
        return [match for line in list(self.lines) if (match := re.search(pattern, line))]

    def wait(self, pattern: str, *, count: int = 1, within: float = PATIENCE) -> list[re.Match[str]]:
        found: list[re.Match[str]] = []
        seen = 0

        def all_came() -> bool:
            nonlocal seen
            lines = self.lines[seen:]
            seen += len(lines)  # each is looked at once: under load a log has thousands
            found.extend(match for line in lines if (match := re.search(pattern, line)))
            return len(found) >= count

        try:
            until(all_came, f"{count} line(s) like {pattern!r}", within=within)
            return found
        except AssertionError as missing:
            raise AssertionError(f"{missing}; what came:\n{self.text}") from None

    def join(self) -> None:
        self._thread.join(5)


DEFECTS = re.compile(
    r"was sent SIG(SEGV|ABRT|BUS|ILL|FPE|SYS|TRAP)|Fatal Python error|panicked|Exception in worker process"
    r"|the baton was held|a defect of tricorn"
)
"""Lines of a log that tell of a defect, of tricorn or of its test. A master may well exit with 0 after one."""


NO_BOOT = "Exception in worker process"
"""What a test `expects` whose application cannot be loaded."""


class Server:
    """A context manager: inside it the server accepts; after it no process of it may be left.

    Nor may its log tell of a defect, unless the test provokes one: `expects` is what such lines match then.
    """

    def __init__(
        self,
        app: str = "gallery:application",
        *,
        worker_class: str = "gthread",
        workers: int = 1,
        transport: str = "tcp",
        chdir: Path | None = APPS,
        env: Mapping[str, str] | None = None,
        bind: str | None = None,
        wait: bool = True,
        extra: Sequence[str] = (),
        expects: str | None = None,
        twins: bool = True,
        fresh: bool = False,
        **options: Any,
    ) -> None:
        """`twins`: the application is the one of its name for the interface that the class is for.

        `fresh`: with an interpreter of its own, and not forked from one that has imported what the arbiter imports.
        """
        self.wire_type: Callable[..., Wire] = Wire
        """Connections of tests: HTTP/1.1 in the clear, unless a suite asks the same over another transport."""
        self.wire_options: dict[str, Any] = {}
        self.scheme = "http"
        """What its applications see."""
        self.directory = Path(tempfile.mkdtemp(prefix="tricorn-t-"))
        self.workers = workers
        self.address: Address
        if transport == "unix":
            self.address = str(self.directory / "s")
            bind = bind or f"unix:{self.address}"
        else:
            self.port = int(bind.rpartition(":")[2]) if bind else free_port()
            self.address = ("127.0.0.1", self.port)
            bind = bind or f"127.0.0.1:{self.port}"
        if worker_class == "gthread":
            options.setdefault("threads", 4)
        options.setdefault("graceful_timeout", 5)
        self.bind = bind
        self.argv = [
            *command(),
            "-b",
            bind,
            "-k",
            worker_class,
            "-w",
            str(workers),
            *arguments(options),
            *extra,
        ]
        if chdir is not None:
            self.argv += ["--chdir", str(chdir)]
        if app:
            self.argv.append(twin(app, worker_class) if twins else app)
        self._mark = f"TEST_MARK_OF_TRICORN={uuid.uuid4().hex}"
        self._env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        name, _, value = self._mark.partition("=")
        self._env[name] = value
        self._wait = wait
        self._expects = expects
        self._alias = alias_of(worker_class)
        self._fresh = fresh or always_fresh or not self._alias or "daemon" in options or "-D" in extra

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(check=kind is None)

    def start(self) -> None:
        own = len(OWN_COMMAND)
        if self._fresh or self.argv[:own] != OWN_COMMAND or not Forkserver.can_start(self._env):
            self.process: subprocess.Popen[bytes] | Forked = subprocess.Popen(
                self.argv,
                cwd=self.directory,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        else:
            self.process = Forkserver.of(self._alias).start(self.argv[own:], str(self.directory), self._env)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.log = Lines(self.process.stderr)
        self.out = Lines(self.process.stdout)
        if self._wait:
            try:
                self.wait_ready()
            except BaseException:
                self.stop(check=False)
                raise

    def wait_ready(self) -> None:
        def booted() -> bool:
            if self.process.poll() is not None:
                self.log.join()
                raise AssertionError(f"the server exited with {self.process.returncode}:\n{self.log.text}")
            return len(self.log.matching(r"Booting worker with pid: \d+")) >= self.workers

        until(booted, f"{self.workers} workers boot: {self.argv}")
        until(self._accepts, "the server accepts connections")

    def _accepts(self) -> bool:
        try:
            Wire(self.address, timeout=1).close()
        except OSError:
            return False
        return True

    @property
    def pid(self) -> int:
        return self.process.pid

    def worker_pids(self) -> list[int]:
        return proc.children(self.pid)

    def worker_pid(self) -> int:
        """The pid of the only worker."""
        (pid,) = self.worker_pids()
        return pid

    def connect(self, **options: Any) -> Wire:
        return self.wire_type(self.address, **self.wire_options, **options)

    def get(self, target: str, *fields: tuple[str, str]) -> Reply:
        """One request on a connection of its own."""
        with self.connect() as wire:
            return wire.get(target, *fields)

    def post(self, target: str, body: bytes, *fields: tuple[str, str]) -> Reply:
        with self.connect() as wire:
            return wire.ask("POST", target, fields, body)

    def calls(self) -> int:
        """How often the only worker's application was called so far (the counter itself does not count)."""
        return int(self.get("/count").body)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait_exit(self, within: float = PATIENCE, *, outlived: bool = False) -> int:
        """The exit status of the master. All its output has been read then, unless a child has `outlived` it."""
        try:
            status = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server still runs after {within:g} s; its log:\n{self.log.text}") from None
        if not outlived:
            self.log.join()
            self.out.join()
        if status:
            print(f"exit status {status}; the log:\n{self.log.text}")  # a test that fails shows it
        return status

    def leftovers(self) -> list[int]:
        return [pid for pid in proc.with_mark(self._mark, self.pid) if pid != self.pid or self.process.poll() is None]

    def stop(self, *, check: bool = True) -> int:
        """Stops gracefully; complains about everything that does not go away by itself."""
        complaints = []
        all_gone = False
        try:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                complaints.append("the master did not stop within 30 s after SIGTERM")
            try:
                all_gone = until(lambda: not self.leftovers(), "all processes are gone", within=30)
            except AssertionError:
                complaints += [f"left behind: {pid} {proc.command_line(pid)}" for pid in self.leftovers()]
        finally:
            for pid in [] if all_gone else self.leftovers():
                os.kill(pid, signal.SIGKILL)
            self.process.wait(30)
            self.log.join()
            self.out.join()
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None and not complaints:
                    stream.close()
            shutil.rmtree(self.directory, ignore_errors=True)
        complaints += self._defects()
        if check and complaints:
            raise AssertionError("; ".join(complaints) + f"; its log:\n{self.log.text}")
        assert self.process.returncode is not None
        return self.process.returncode

    def _defects(self) -> list[str]:
        if REFERENCE:
            return []
        lines = [line for line in list(self.log.lines) if DEFECTS.search(line)]
        return [
            f"the log tells of a defect: {line}"
            for line in lines
            if self._expects is None or not re.search(self._expects, line)
        ]


def run(
    *argv: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 2 * PATIENCE
) -> Any:
    """Runs the server's command to its end, for the cases in which it must not come up."""
    # Any port but the default one, which may be in use: the weakest source of `bind`.
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PORT": "0", **(env or {})}
    if command() == OWN_COMMAND and not always_fresh and Forkserver.can_start(environ):
        return Forkserver.of("sync").run(None, *argv, cwd=str(cwd or APPS), environ=environ, within=timeout)
    return subprocess.run(
        [*command(), *argv],
        cwd=cwd or APPS,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
