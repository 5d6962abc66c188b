"""`tricorn tune` as a program: recommendations, refusals, and what is left of it: nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tricorn_bench.bench import proc
from tricorn_bench.bench.report import drawing

from tests.harness import Server, until
from tests.harness.commands import ended, started

WAITS = """
import time
def app(environ, start_response):
    time.sleep(0.05)
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]
"""
FAILS = """
def app(environ, start_response):
    start_response("500 Internal Server Error", [("Content-Length", "0")])
    return []
"""
QUICK = ("--seconds", "0.5", "--rounds", "1", "--anyway", "--json")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name, text in {"waits": WAITS, "fails": FAILS}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def tuned(site: Path, *words: str) -> tuple[int, str, str]:
    return ended(started("tune", site, *words), within=170)


def test_threads_for_what_waits(site: Path) -> None:
    page = site / "page.html"
    html = ("--html", str(page)) if drawing.available() else ()
    limits = ("--classes", "sync,gthread", "--memory", "200M")
    status, out, err = tuned(site, "waits:app", "sync -w 2", *limits, *html, *QUICK)
    assert status == 0, err
    assert not html or "<svg" in page.read_text()
    found: dict[str, Any] = json.loads(out)
    assert found["schema"] == "tricorn-tune/1"
    assert found["recommended"].startswith("tricorn gthread")
    assert found["today"] == "tricorn sync -w 2"
    assert found["gain"]["value"] > 2
    by_name = {one["configuration"]: one for one in found["measured"]}
    assert by_name[found["recommended"]]["memory"] < 200 << 20
    assert all(each in by_name for each in ("tricorn sync -w 2", found["recommended"]))


def test_an_application_that_fails(site: Path) -> None:
    status, out, err = tuned(site, "fails:app", "--classes", "sync", *QUICK)
    assert (status, out) == (1, "")
    assert "answers GET / with status 500" in err


def test_a_target_below_what_one_request_takes(site: Path) -> None:
    status, _, err = tuned(site, "waits:app", "--classes", "sync", "--target", "p99 < 5ms", *QUICK)
    assert status == 1
    assert "p99 < 5 ms cannot be met: a single request takes " in err


def test_tune_for_another_machine(site: Path) -> None:
    status, _, err = tuned(site, "waits:app", "--url", "http://shop.example/cart", *QUICK)
    assert status == 1
    assert "is not on this machine" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing_and_says_what_it_has(site: Path, number: signal.Signals) -> None:
    process = started("tune", site, "waits:app", "--classes", "sync,gthread", "--seconds", "60", "--anyway")
    try:
        until(lambda: len(proc.descendants(process.pid)) > 1, "a server has been started", within=60)
        left = proc.descendants(process.pid)
        process.send_signal(number)
    finally:
        status, out, err = ended(process)
    assert status == 128 + number
    assert "all servers have been stopped" in err
    assert "Measured with GET /" in out
    assert not [pid for pid in left if Path(f"/proc/{pid}").exists() and pid != os.getpid()]


def test_a_running_server_is_only_read(tmp_path: Path) -> None:
    path = tmp_path / "server.ctl"
    with (
        Server("gallery:application", worker_class="sync", control_socket=str(path)) as server,
        server.connect() as wire,
    ):
        for _ in range(120):
            assert wire.get("/").status == 200
        begun = server.get("/").status
        done = subprocess.run(
            [sys.executable, "-m", "tricorn", "tune", "--socket", str(path)], capture_output=True, text=True, timeout=60
        )
        assert (begun, done.returncode) == (200, 0), done.stderr
        assert "sync, 1 workers, 12" in done.stdout
        assert "Confidence: low" in done.stdout
