"""Installs each distribution of a folder alone into a clean environment, and has it do there what it is for.

    python scripts/try_wheel.py FOLDER [NAME]

The server, whose wheel is that of the interpreter that runs this, answers requests, and says how to install what the
other distributions have. Those whose wheels are in the folder, too, have an environment each, for which pip may ask an
index for what they depend on. For the server neither an index nor Rust is asked.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

APPLICATION = """\
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "13")])
    return [b"Hello, wheel!"]
"""
ASGI_APPLICATION = """\
async def app(scope, receive, send):
    body = b"Hello, wheel!"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"13")]})
    await send({"type": "http.response.body", "body": body})
"""
OFFLOADING = ASGI_APPLICATION.replace('b"Hello, wheel!"', 'await tricorn.offload(bytes)(b"Hello, wheel!")')
START_SECONDS, STOP_SECONDS = 30, 35


class Problem(Exception):
    """What is wrong, for the report."""


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    name = sys.argv[2] if len(sys.argv) > 2 else folder.name
    tried = ["tricorn"]
    try:
        with installed([wheel_of(folder, sys.version_info[:2])]) as environment:
            try_server(environment)
        for distribution, attempt in OTHERS.items():
            wheels = sorted(folder.glob(f"{distribution.replace('-', '_')}-*.whl"))
            if wheels:
                with installed([wheel_of(folder, sys.version_info[:2]), *wheels]) as environment:
                    attempt(environment)
                tried.append(distribution)
        for wheel in folder.glob("tricorn-*-none-any.whl"):
            check_choice(folder, wheel_of(folder, sys.version_info[:2]))
            with installed([wheel, *PORTABLE_SERVERS]) as environment:
                try_portable(environment)
            tried.append("tricorn without the core")
    except Problem as problem:
        print(f"   {name}: {problem}")
        return 1
    print(f"   {name}: installed alone, and doing what it is for: {', '.join(tried)}")
    return 0


def wheel_of(folder: Path, version: tuple[int, int]) -> Path:
    tag = f"cp{version[0]}{version[1]}"
    found = sorted(folder.glob(f"*-{tag}-{tag}-*.whl"))
    if len(found) != 1:
        raise SystemExit(f"{folder}: one wheel for {tag} was expected, found {[path.name for path in found]}")
    return found[0]


class Environment:
    """A clean one, and a folder with an application."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.bin = work / "environment/bin"

    def run(self, *words: str) -> tuple[int, str]:
        """The exit status of a program of the environment, and what it said."""
        command = [str(self.bin / words[0]), *words[1:]]
        done = subprocess.run(
            command, cwd=self.work, env=variables(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return done.returncode, done.stdout

    def expects(self, status: int, said: str, *words: str) -> None:
        found = self.run(*words)
        if found[0] != status or said not in found[1]:
            raise Problem(f"{' '.join(words)} ended with {found[0]}, and not with {status} and {said!r}:\n{found[1]}")

    @contextmanager
    def serving(self, application: str, *words: str, stops: bool = True) -> Iterator[str]:
        """The address of a server that answers while the block runs; if it `stops`, it leaves with status 0."""
        (self.work / "app.py").write_text(application)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [str(self.bin / "tricorn"), "-b", f"127.0.0.1:{port}", *words, "app:app"]
        with (self.work / "log").open("w+") as log:
            server = subprocess.Popen(command, cwd=self.work, env=variables(), stderr=log, start_new_session=True)
            try:
                body = answer(server, port)
                if body != b"Hello, wheel!":
                    said = (self.work / "log").read_text()
                    raise Problem(f"{' '.join(words)}: the answer was {body!r}; the server said:\n{said}")
                yield f"127.0.0.1:{port}"
                if stops:
                    server.send_signal(signal.SIGTERM)
                if stops and (status := server.wait(STOP_SECONDS)):
                    raise Problem(f"{' '.join(words)}: the server left with status {status}")
            finally:
                if server.poll() is None:
                    os.killpg(server.pid, signal.SIGKILL)
                    server.wait()


@contextmanager
def installed(wheels: Sequence[Path | str]) -> Iterator[Environment]:
    """A clean environment with these wheels, and what they depend on, for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="tricorn-wheel-") as work:
        environment = Environment(Path(work))
        venv.create(environment.bin.parent)
        pip = [sys.executable, "-m", "pip", "--python", str(environment.bin / "python"), "install"]
        options = ["--quiet", "--disable-pip-version-check", *(["--no-index"] if len(wheels) == 1 else [])]
        subprocess.run([*pip, *options, *map(str, wheels)], env=variables(), check=True)
        yield environment


def variables() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return {**kept, "PATH": "/usr/bin:/bin"}


def try_server(environment: Environment) -> None:
    for words in ((), ("-k", "sync"), ("-k", "gthread", "--threads", "2")):
        with environment.serving(APPLICATION, *words):
            pass
    with environment.serving(ASGI_APPLICATION, "-k", "asgi"):
        pass
    for extra, commands in (("tools", ("dev-cert", "doctor", "init", "top")), ("bench", ("bench", "load"))):
        said = f"needs tricorn-{extra}, which is not installed: pip install 'tricorn[{extra}]'"
        for command in commands:
            environment.expects(2, said, "tricorn", command)
    for alias in ("gevent", "eventlet"):
        environment.expects(1, f"pip install 'tricorn[{alias}]'", "tricorn", "-k", alias, "--check-config", "app:app")
    environment.expects(1, "pip install tricorn-green", "python", "-c", "from tricorn import offload")
    environment.expects(0, "usage: tricorn ctl", "tricorn", "ctl", "--help")


def try_tools(environment: Environment) -> None:
    environment.expects(0, "usage: tricorn top", "tricorn", "top", "--help")
    environment.expects(0, "[Service]", "tricorn", "init", "systemd", "app:app")
    with environment.serving(APPLICATION, "-n", "tried", "-k", "gthread"):
        environment.expects(0, '"requests"', "tricorn", "top", "--once", "--json", "-n", "tried")


def try_bench(environment: Environment) -> None:
    environment.expects(0, "usage: tricorn bench", "tricorn", "bench", "--help")
    with environment.serving(APPLICATION) as address:
        environment.expects(0, "[200]", "tricorn", "load", "-n", "20", "-c", "2", f"http://{address}/")


def try_green(environment: Environment) -> None:
    with environment.serving(f"import tricorn\n{OFFLOADING}", "-k", "asgi"):
        pass
    environment.expects(1, "pip install 'tricorn[gevent]'", "tricorn", "-k", "gevent", "--check-config", "app:app")


PORTABLE_SERVERS = ("uvicorn", "werkzeug")


def try_portable(environment: Environment) -> None:
    (environment.work / "app.py").write_text(APPLICATION)
    environment.expects(0, "", "tricorn", "--check-config", "app:app")
    environment.expects(0, "workers", "tricorn", "--print-config", "app:app")
    environment.expects(1, "needs tricorn's native core", "tricorn", "ctl", "status")
    for application in (APPLICATION, ASGI_APPLICATION):
        with environment.serving(application, "--reload", stops=False):
            pass


def check_choice(folder: Path, native: Path) -> None:
    """Checks that pip takes the wheel with the core where there is one, and the other one elsewhere."""
    for platform, core in {"macosx_14_0_arm64": False, "win_amd64": False, platform_of(native): True}.items():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        choice = ["--no-index", f"--find-links={folder}", "--only-binary=:all:", "--platform", platform]
        with tempfile.TemporaryDirectory() as into:
            subprocess.run([*pip, *choice, "-d", into, "tricorn"], check=True)
            (found,) = os.listdir(into)
        if ("none-any" in found) == core:
            raise Problem(f"pip takes {found} on {platform}")


def platform_of(wheel: Path) -> str:
    return wheel.stem.rpartition("-")[2].partition(".")[0]


OTHERS: dict[str, Callable[[Environment], None]] = {
    "tricorn-bench": try_bench,
    "tricorn-green": try_green,
    "tricorn-tools": try_tools,
}


def answer(server: subprocess.Popen[bytes], port: int) -> bytes | None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as response:
                body: bytes = response.read()
                return body
        except OSError:
            time.sleep(0.1)
    return None


if __name__ == "__main__":
    sys.exit(main())
