"""HAProxy and nginx before servers under test, with a configuration of the test's own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.deadline import PATIENCE, until
from tests.harness.server import Lines, free_port
from tests.harness.wire import Wire

if TYPE_CHECKING:
    from typing_extensions import Self

HAPROXY = """\
global
    stats socket {directory}/stats mode 600 level admin
defaults
    mode {mode}
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout queue 60s
frontend front
    bind 127.0.0.1:{port}
    default_backend hosts
backend hosts
{text}
"""
BEGINNING = """\
{first}
daemon off;
pid {directory}/nginx.pid;
error_log stderr notice;
events {{}}
"""
NGINX = (
    BEGINNING
    + """\
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
{text}
}}
"""
)
"""What Debian's nginx.conf has around a site, without its directories."""
NGINX_STREAM = (
    BEGINNING
    + """\
stream {{
{text}
}}
"""
)
STREAM = "ngx_stream_module.so"
MODULES = ("/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/usr/local/lib/nginx/modules")
WHERE = "/usr/sbin:/usr/local/sbin"


def nginx_around(text: str, directory: Path, *first: str) -> str:
    """A whole nginx.conf, with `text` in `http`, and these lines besides at its beginning."""
    user = ("user root;",) if os.geteuid() == 0 else ()
    return NGINX.format(directory=directory, first="\n".join((*user, *first)), text=text)


def nginx_stream(text: str, directory: Path, module: str) -> str:
    """A whole nginx.conf, with `text` in `stream`."""
    user = " user root;" if os.geteuid() == 0 else ""
    return NGINX_STREAM.format(directory=directory, first=f"load_module {module};{user}", text=text)


def find_stream_module() -> str | None:
    """Where nginx' module for connections that are no HTTP is: Debian has it in a package of its own."""
    return next((path for folder in MODULES if os.path.exists(path := f"{folder}/{STREAM}")), None)


def stream_module() -> str:
    found = find_stream_module()
    if found is None:
        pytest.skip("nginx has no module stream")
    return found


def program(kind: str, *where: str) -> str:
    """Its path, in these directories besides; without it the test is skipped."""
    found = shutil.which(kind, path=":".join((os.environ.get("PATH", ""), WHERE, *where)))
    if found is None:
        pytest.skip(f"{kind} is not installed")
    return found


class Running:
    """A context manager: inside it a program runs, and answers at its port."""

    def __init__(self, command: list[str], port: int) -> None:
        self.port = port
        self._command = command

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert self._process.stderr is not None
        self.log = Lines(self._process.stderr)
        try:
            until(self.answers, f"{self._command[0]} answers")
        except AssertionError:
            self.__exit__()
            raise AssertionError(self.log.text) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)  # to nginx's master, who ends its workers
        try:
            self._process.wait(PATIENCE)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()

    def answers(self) -> bool:
        """Whether it is ready."""
        raise NotImplementedError

    def connect(self) -> Wire:
        return Wire(("127.0.0.1", self.port))


class Answering(Running):
    """A front end that passes requests on once it is ready."""

    def answers(self) -> bool:
        try:
            with self.connect() as wire:
                return wire.get("/").status == 200
        except (OSError, AssertionError):
            return False


class Balancer(Running):
    """A context manager: inside it the balancer runs; its port is in the text as `{port}`.

    The text is the backend of HAProxy, or what stands in nginx's `http`.
    """

    def __init__(self, kind: str, text: str, directory: Path, *, mode: str = "http", module: str = "") -> None:
        """`mode`: HAProxy's, `http` or `tcp`. `module`: nginx' `stream`, in which the text then stands."""
        port = free_port()
        self._stats = directory / "stats"
        self._has_operator = kind == "haproxy"
        path = directory / f"{kind}.conf"
        text = text.replace("{port}", str(port))
        if kind == "haproxy":
            path.write_text(HAPROXY.format(directory=directory, port=port, mode=mode, text=text))
            options = ["-db", "-f", str(path)]
        else:
            path.write_text(nginx_stream(text, directory, module) if module else nginx_around(text, directory))
            options = ["-p", str(directory), "-c", str(path), "-e", "stderr"]
        super().__init__([program(kind), *options], port)

    def answers(self) -> bool:
        """It accepts, whatever stands behind it, and HAProxy its operator, too."""
        try:
            if self._has_operator:  # its socket is there before it listens
                self.says("show info")
            socket.create_connection(("127.0.0.1", self.port), 5).close()
        except OSError:
            return False
        return True

    def says(self, words: str) -> str:
        return haproxy_says(self._stats, words)

    def told(self) -> dict[str, dict[str, str]]:
        return haproxy_tells(self._stats, "hosts")


def haproxy_says(stats: Path, words: str) -> str:
    """HAProxy's answer to an operator."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(stats))
        sock.sendall(words.encode() + b"\n")
        return b"".join(iter(lambda: sock.recv(65536), b"")).decode().strip()


def haproxy_tells(stats: Path, backend: str) -> dict[str, dict[str, str]]:
    """What HAProxy says of each server: the columns of `show stat`."""
    head, *rows = haproxy_says(stats, "show stat").splitlines()
    names = head.removeprefix("# ").split(",")
    columns = [dict(zip(names, row.split(","), strict=False)) for row in rows]
    return {row["svname"]: row for row in columns if row["pxname"] == backend}
