"""A server as an operator has it: a configuration file, and modules that are edited while it runs."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.harness import proc
from tests.harness.deadline import PATIENCE, until
from tests.harness.server import APPS, Server, alias_of, arguments, command, twin

OWN_MODULE = """\
import os

open(f"{__file__}.{os.getpid()}.imported", "w").close()


def application(environ, start_response):
    body = b"{text}"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""


ASGI_MODULE = """\
import os

open(f"{__file__}.{os.getpid()}.imported", "w").close()


async def application(scope, receive, send):
    assert scope["type"] == "http"
    fields = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(b"{text}"))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": b"{text}"})
"""


def module(text: str, worker_class: str = "") -> str:
    """The source of an application that answers `text`, and leaves a file when it has been imported."""
    return (ASGI_MODULE if worker_class == "asgi" else OWN_MODULE).replace("{text}", text)


def configured_class(config: str | Path) -> str:
    """The worker class in the text of a configuration."""
    found = re.search(r"^worker_class = ['\"]([\w.]+)", config, re.MULTILINE) if isinstance(config, str) else None
    return found[1] if found else ""


class Site(Server):
    """Its directory holds `conf.py` and `files`, and is on the import path; nothing but the file configures it.

    `config` is the file's text (the address is put before it), or the path of a file that is used as it is.
    """

    def __init__(
        self,
        config: str | Path = "",
        *,
        app: str = "gallery:application",
        workers: int = 1,
        files: Mapping[str, str] | None = None,
        transport: str = "tcp",
        env: Mapping[str, str] | None = None,
        wait: bool = True,
        extra: Sequence[str] = (),
        expects: str | None = None,
        fresh: bool = False,
        **options: Any,
    ) -> None:
        found = configured_class(config)
        base = found if alias_of(found) else "gthread"  # what it is forked from has imported the class
        super().__init__(
            app,
            worker_class=base,
            workers=workers,
            transport=transport,
            env=env,
            wait=wait,
            expects=expects,
            fresh=fresh,
        )
        path = f"{self.directory},{APPS}"
        if isinstance(config, Path):
            self.conf = config
            given = ["-b", self.bind, "--pythonpath", path]
        else:
            self._header = f"bind = {self.bind!r}\npythonpath = {path!r}\ngraceful_timeout = 5\n"
            self.conf = self.directory / "conf.py"
            self.configure(config)
            given = []
        for name, text in (files or {}).items():
            self.write(name, text)
        self.argv = [*command(), "-c", str(self.conf), *given, *arguments(options), *extra]
        if app:
            self.argv.append(twin(app, configured_class(config)))

    def wait_ready(self) -> None:
        """As the server's; and a worker that has announced its boot may not have imported the application yet."""
        super().wait_ready()
        if any(".imported" in path.read_text() for path in self.directory.glob("*.py")):
            until(self.imported, "the application is imported")
            until(lambda: all(map(rests, self.worker_pids())), "the workers rest")

    def imported(self) -> bool:
        """Whether every worker there is has imported a `module`."""
        names = [path.name for path in self.directory.glob("*.imported")]
        pids = self.worker_pids() if "--preload" not in self.argv else [self.pid]
        return bool(pids) and all(any(f".{pid}." in name for name in names) for pid in pids)

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def configure(self, text: str) -> None:
        """Puts another configuration into the file; the address stays, unless `text` has one."""
        self.conf.write_text(self._header + text)

    def hup(self, *, workers: int | None = None, within: float = PATIENCE) -> None:
        """A reload, waited for until every worker is a new one."""
        replaced(self, lambda: self.signal(signal.SIGHUP), workers=workers, within=within)


def rests(pid: int) -> bool:
    """Whether the process has neither used nor wanted a processor for a while: it has done all that a boot takes."""
    before = proc.cpu_seconds(pid)
    for _ in range(10):
        if not proc.sleeps(pid):
            return False
        time.sleep(0.005)
    return proc.cpu_seconds(pid) == before


def replaced(server: Server, cause: Any, *, workers: int | None = None, within: float = PATIENCE) -> None:
    """Calls `cause`, and waits until the workers there were are gone and as many (or `workers`) others run."""
    before = set(server.worker_pids())
    cause()

    def done() -> bool:
        now = set(server.worker_pids())
        return not now & before and len(now) == (workers or len(before))

    try:
        until(done, "all workers are replaced", within=within)
    except AssertionError as error:
        raise AssertionError(f"{error}: {before} -> {server.worker_pids()}; its log:\n{server.log.text}") from None
