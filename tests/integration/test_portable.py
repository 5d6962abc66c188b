"""The package on systems without the native core: its modules, without what the core and Linux have.

Another system is played by a `sitecustomize` that takes away what Python lacks there. The wheel itself is tried by
scripts/try_wheel.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.request
from http.client import HTTPException
from pathlib import Path

import pytest
import tricorn

from tests.harness.deadline import until
from tests.harness.server import free_port

ABSENT = {
    "macos": """
import os, select, signal, socket
gone = {
    os: "pidfd_open memfd_create eventfd sched_getaffinity splice preadv posix_fadvise",
    signal: "pidfd_send_signal sigtimedwait",
    select: "epoll",
    socket: "SO_PEERCRED AF_NETLINK SOCK_CLOEXEC SOCK_NONBLOCK",
}
""",
    "windows": """
import os, select, signal, socket, sys
sys.modules.update(dict.fromkeys(["fcntl", "pwd", "grp", "resource", "termios", "syslog"]))
gone = {
    os: "geteuid getegid getuid getgid fork setsid killpg uname chown pidfd_open memfd_create sched_getaffinity",
    signal: "SIGHUP SIGUSR1 SIGUSR2 SIGQUIT SIGCHLD SIGTTIN SIGTTOU SIGWINCH SIGALRM pthread_sigmask",
    select: "epoll poll",
    socket: "AF_UNIX SO_REUSEPORT SO_PEERCRED recv_fds send_fds",
}
""",
}
TAKE_AWAY = """
for module, names in gone.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""
APPLICATION = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"VERSION"]
"""
CONFIGURATION = 'worker_class = "gthread"\nthreads = 4\nworkers = 3\nuser = "www-data"\ngroup = 1000\n'


@pytest.fixture(scope="module", params=ABSENT)
def packages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as it is installed on another system."""
    folder = tmp_path_factory.mktemp(request.param)
    shutil.copytree(Path(tricorn.__file__).parent, folder / "tricorn", ignore=shutil.ignore_patterns("_core.*.so"))
    (folder / "sitecustomize.py").write_text(ABSENT[request.param] + TAKE_AWAY)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "main.py").write_text(APPLICATION)
    (tmp_path / "gunicorn.conf.py").write_text(CONFIGURATION)
    return tmp_path


def environ(packages: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}


def run(packages: Path, project: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tricorn", *words],
        cwd=project,
        env=environ(packages),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout


def test_a_configuration_is_checked_without_the_core(packages: Path, project: Path) -> None:
    assert run(packages, project, "--check-config", "main:app") == (0, "")
    status, said = run(packages, project, "--check-config", "main:absent")
    assert status == 1
    assert "absent" in said
    assert "Traceback" not in said
    (project / "gunicorn.conf.py").write_text("workers = -1\n")
    status, said = run(packages, project, "--check-config", "main:app")
    assert status == 1
    assert "workers" in said


def test_a_configuration_is_printed_without_the_core(packages: Path, project: Path) -> None:
    status, said = run(packages, project, "--print-config", "main:app")
    assert status == 0
    assert [line.split() for line in said.splitlines() if line.startswith(("workers ", "threads "))] == [
        ["threads", "=", "4", "(./gunicorn.conf.py:2)"],
        ["workers", "=", "3", "(./gunicorn.conf.py:3)"],
    ]


def test_a_command_that_needs_the_core_says_so(packages: Path, project: Path) -> None:
    status, said = run(packages, project, "ctl", "status")
    assert status == 1
    assert "tricorn ctl needs tricorn's native core" in said
    assert "Traceback" not in said


def test_a_reloading_development_server_takes_the_place_of_workers(packages: Path, project: Path) -> None:
    port = free_port()
    (project / "main.py").write_text(APPLICATION.replace("VERSION", "first"))
    with subprocess.Popen(
        [sys.executable, "-m", "tricorn", "-b", f"127.0.0.1:{port}", "--reload", "main:app"],
        cwd=project,
        env=environ(packages),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as server:
        try:
            until(lambda: answer(port) == "first", "the development server answers")
            (project / "main.py").write_text(APPLICATION.replace("VERSION", "the second one"))
            until(lambda: answer(port) == "the second one", "it serves the changed module")
        finally:
            os.killpg(server.pid, 9)
        assert server.stderr is not None
        said = server.stderr.read()
    assert "tricorn has no native core for" in said
    assert "werkzeug" in said
    assert "for development only" in said


def test_a_missing_development_server_is_named(packages: Path, project: Path) -> None:
    (project / "main.py").write_text("async def app(scope, receive, send): ...\n")
    (project / "gunicorn.conf.py").unlink()
    status, said = run(packages, project, "main:app")
    assert status == 1
    assert "pip install uvicorn" in said


def answer(port: int) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as response:
            body: bytes = response.read()
            return body.decode()
    except (OSError, HTTPException):  # a server that is replaced may end in the midst of a response
        return None
