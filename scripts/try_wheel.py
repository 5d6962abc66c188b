"""Installs a wheel alone into a clean environment, and has the server of that environment answer a request.

    python scripts/try_wheel.py FOLDER|WHEEL [NAME]

In a folder it is the wheel of the interpreter that runs this. Neither an index nor Rust is asked.
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
from pathlib import Path

APPLICATION = """\
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "13")])
    return [b"Hello, wheel!"]
"""
START_SECONDS, STOP_SECONDS = 30, 35


def main() -> int:
    given = Path(sys.argv[1]).resolve()
    wheel = given if given.suffix == ".whl" else wheel_of(given, sys.version_info[:2])
    name = sys.argv[2] if len(sys.argv) > 2 else wheel.name
    with tempfile.TemporaryDirectory(prefix="tricorn-wheel-") as work:
        python = install(wheel, Path(work) / "environment")
        problem = serve(python, Path(work))
    print(f"   {name}: {problem or 'installed and serving'}")
    return 1 if problem else 0


def wheel_of(folder: Path, version: tuple[int, int]) -> Path:
    tag = f"cp{version[0]}{version[1]}"
    found = sorted(folder.glob(f"*-{tag}-{tag}-*.whl"))
    if len(found) != 1:
        raise SystemExit(f"{folder}: one wheel for {tag} was expected, found {[path.name for path in found]}")
    return found[0]


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return {**kept, "PATH": "/usr/bin:/bin"}


def install(wheel: Path, target: Path) -> Path:
    """The interpreter of the environment."""
    venv.create(target, with_pip=True)
    python = target / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run(command, env=environment(), check=True)
    return python


def serve(python: Path, work: Path) -> str | None:
    """The server answers, and leaves with status 0; else what is wrong."""
    (work / "app.py").write_text(APPLICATION)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(python.parent / "tricorn"), "-b", f"127.0.0.1:{port}", "app:app"]
    with (work / "log").open("w+") as log:
        server = subprocess.Popen(command, cwd=work, env=environment(), stderr=log)
        try:
            body = answer(server, port)
            if body != b"Hello, wheel!":
                return f"the answer was {body!r}; the server said:\n{(work / 'log').read_text()}"
            server.send_signal(signal.SIGTERM)
            status = server.wait(STOP_SECONDS)
            return f"the server left with status {status}" if status else None
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()


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
