"""gunicorn's own program for its control socket, unmodified, against this server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import REFERENCE
from tests.harness.deadline import until
from tests.harness.needs import gunicorns_packages
from tests.harness.site import Site

PACKAGES = gunicorns_packages()

pytestmark = [
    pytest.mark.skipif(PACKAGES is None, reason="needs gunicorn itself: make test-reference"),
    pytest.mark.skipif(REFERENCE, reason="the server is gunicorn itself, without its socket"),
]


def gunicornc(path: Path, command: str, *options: str) -> str:
    program = [sys.executable, "-m", "gunicorn.ctl.cli", "-s", str(path), "-c", command, *options]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_of_its_words_are_understood_and_its_tables_filled() -> None:
    path = Path(f"/tmp/tricorn-gunicornc-{os.getpid()}")
    with Site(f"workers = 2\ncontrol_socket = {str(path)!r}\n", workers=2) as server:

        def all_serve() -> bool:
            return all(row["booted"] for row in json.loads(gunicornc(path, "show workers", "-j"))["workers"])

        until(all_serve, "both have booted")
        shown = json.loads(gunicornc(path, "show workers", "-j"))
        assert {row["pid"] for row in shown["workers"]} == set(server.worker_pids())
        table = gunicornc(path, "show workers").splitlines()
        assert table[0].split() == ["PID", "AGE", "BOOTED", "LAST_BEAT"]
        assert table[2].split()[2:] == ["yes", "n/a"]
        assert table[-1] == "Total: 2 workers"
        assert f"  PID: {server.pid}" in gunicornc(path, "show all")
        assert "Dirty arbiter not running" in gunicornc(path, "show dirty")
        assert "workers: 2" in gunicornc(path, "show config").splitlines()
        assert "Workers target:   2" in gunicornc(path, "show stats")
        assert "Total: 1 listeners" in gunicornc(path, "show listeners")
        assert "worker kill <PID>" in gunicornc(path, "help")
        assert json.loads(gunicornc(path, "worker add 1", "-j")) == {"added": 1, "previous": 2, "total": 3}
        assert json.loads(gunicornc(path, "worker remove", "-j")) == {"removed": 1, "previous": 3, "total": 2}
        pid = server.worker_pids()[0]
        assert json.loads(gunicornc(path, f"worker kill {pid}", "-j")) == {"success": True, "killed": pid}
        assert json.loads(gunicornc(path, "reopen", "-j")) == {"status": "reopening"}
        assert json.loads(gunicornc(path, "reload", "-j")) == {"status": "reloading"}
        assert json.loads(gunicornc(path, "shutdown quick", "-j")) == {"status": "shutting_down", "mode": "quick"}
        assert server.wait_exit() == 0
    assert not path.exists()
