"""`tricorn init systemd`: systemd's own checker, and the service started as the unit says, under its filter."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import REFERENCE, Wire, until
from tests.harness.filtered import LIBRARY
from tests.harness.manager import Manager
from tests.harness.server import Lines, free_port, run

pytestmark = [
    pytest.mark.skipif(REFERENCE, reason="gunicorn prints no files"),
    pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed"),
]

APP = """\
def application(environ, start_response):
    start_response("200 OK", [("Content-Length", "5")])
    return [b"here\\n"]
"""


def unit(directory: Path, *words: str) -> dict[str, str]:
    """The keys of the unit that is printed for these words; the unit is in the directory, too."""
    done = run("init", "systemd", "-o", str(directory), "--force", *words, cwd=directory)
    assert done.returncode == 0, done.stderr
    (path,) = directory.glob("*.service")
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_systemd_finds_nothing_to_complain_of(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    for words in (
        (),
        ("--socket", "-b", "unix:/run/shop/s", "-b", ":80", "--max-worker-memory", "100M"),
        ("-b", ":80", "-u", "0", "--access-logformat", '%(h)s "%(r)s" $x \\', "--log-file", "log/error"),
    ):
        unit(tmp_path, *words, "shop:application")
        files = [str(path) for path in tmp_path.glob("shop.s*")]
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, ""), words
        for path in tmp_path.glob("shop.s[eo]*"):
            path.unlink()


def can_filter() -> bool:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


@pytest.mark.skipif(not can_filter(), reason="libseccomp is not installed")
def test_the_service_starts_reloads_and_stops_as_its_unit_says(tmp_path: Path) -> None:
    """Under the unit's filter of system calls, and with the variables and the directory that systemd would give."""
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "run").mkdir(mode=0o700)
    port = free_port()
    said = unit(tmp_path, "--systemd-version", "253", "-w", "2", "-b", f"127.0.0.1:{port}", "shop:application")
    assert said["Type"] == "notify-reload"
    manager = Manager(tmp_path / "notify")
    try:
        service = subprocess.Popen(
            [sys.executable, "-m", "tests.harness.filtered", *said["SystemCallFilter"].split(), "--",
             *shlex.split(said["ExecStart"])],
            cwd=said["WorkingDirectory"],
            env={
                **os.environ,
                **manager.environ,
                "RUNTIME_DIRECTORY": str(tmp_path / "run"),
                "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert service.stderr is not None
        log = Lines(service.stderr)
        try:
            manager.hears("READY=1")
            with Wire(("127.0.0.1", port)) as wire:
                assert wire.get("/").body == b"here\n"
            assert (tmp_path / "run" / "control").is_socket()
            service.send_signal(signal.SIGHUP)
            manager.hears("READY=1", "RELOADING=1", "READY=1")
            service.send_signal(signal.SIGTERM)
            assert service.wait(int(said["TimeoutStopSec"])) == 0
            manager.hears("READY=1", "RELOADING=1", "READY=1", "STOPPING=1")
        finally:
            if service.poll() is None:
                service.kill()
                service.wait(30)
        until(lambda: not log._thread.is_alive(), "its output ends")
        assert not log.matching(r"\[(WARNING|ERROR|CRITICAL)\]|not permitted"), log.text
    finally:
        manager.close()
