"""`tricorn load` against a server: what both count, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tricorn_bench.load import Plan, Progress, Target, run

from benches.generators import __main__ as generators
from tests.conftest import Pool
from tests.harness.server import command, free_port
from tests.harness.server import run as tricorn


def test_the_server_counts_what_the_report_says(pool: Pool, tmp_path: Path) -> None:
    server = pool.get()
    before = server.calls()
    percentiles = tmp_path / "percentiles"
    done = tricorn("load", "-n", "200", "-c", "50", "--hdr", str(percentiles), f"http://127.0.0.1:{server.port}/hello")
    assert done.returncode == 0, done.stderr
    assert "Status code distribution:\n  [200]\t200 responses\n" in done.stdout
    assert server.calls() == before + 200
    assert "Total count    =          200]" in percentiles.read_text()


def test_hey_counts_the_same(pool: Pool) -> None:
    if shutil.which("hey") is None:
        pytest.skip("hey is not installed")
    server = pool.get()
    before = server.calls()
    url = f"http://127.0.0.1:{server.port}/hello"
    done = subprocess.run(["hey", "-n", "200", "-c", "50", url], capture_output=True, text=True, timeout=60)
    assert "  [200]\t200 responses\n" in done.stdout
    assert server.calls() == before + 200
    seen = generators.read_hey(done.stdout, cpu=1.0)
    assert seen.answered == 200
    assert 0 < seen.p50 <= seen.p90 <= seen.p99


def test_a_unix_socket_and_json(pool: Pool) -> None:
    server = pool.get(transport="unix")
    before = server.calls()
    done = tricorn("load", "--json", "-n", "60", "-c", "7", "-disable-keepalive", f"unix:{server.address}:/hello")
    figures = json.loads(done.stdout)
    assert (done.returncode, figures["answered"], figures["errors"]) == (0, 60, {}), done.stderr
    assert server.calls() == before + 60


def test_a_line_for_each_answer(pool: Pool) -> None:
    server = pool.get()
    done = tricorn("load", "-o", "csv", "-n", "30", "-c", "3", f"http://127.0.0.1:{server.port}/hello")
    header, *lines = done.stdout.splitlines()
    assert header.startswith("response-time,DNS+dialup,DNS,Request-write,")
    assert len(lines) == 30, done.stderr
    rows = [line.split(",") for line in lines]
    assert {row[6] for row in rows} == {"200"}
    for row in rows:
        whole, *parts = (float(figure) for figure in row[:6])
        assert abs(whole - sum(parts)) < 0.0004


def test_a_proxy_gets_the_whole_url(pool: Pool) -> None:
    """The server answers as a proxy would, for a host that is nowhere."""
    server = pool.get()
    before = server.calls()
    proxy = ("-x", f"127.0.0.1:{server.port}")
    done = tricorn("load", "--json", "-n", "20", "-c", "2", *proxy, "http://nowhere.invalid/hello")
    figures = json.loads(done.stdout)
    assert (done.returncode, figures["statuses"]) == (0, {"200": 20}), done.stderr
    assert server.calls() == before + 20


def test_interrupted_it_reports_what_it_has(pool: Pool) -> None:
    server = pool.get()
    words = [*command(), "load", "-z", "60s", "-c", "2", f"http://127.0.0.1:{server.port}/hello"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert " req/s   " in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "  [200]\t" in out
    assert "Interrupted: the report covers the time until then." in err
    assert "Traceback" not in err


def test_interrupted_before_the_first_request_one_sentence(tmp_path: Path) -> None:
    log = tmp_path / "log"
    os.mkfifo(log)
    words = [*command(), "load", "--replay", str(log), f"http://127.0.0.1:{free_port()}/"]
    with (
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        log.open("w"),  # which returns when the command has opened it, too
    ):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "Interrupted: there is no report.")


def test_without_a_server_one_sentence() -> None:
    done = tricorn("load", f"http://127.0.0.1:{free_port()}/")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip().count("\n") == 0
    assert "Connection refused. Is the server running, and is this where it listens?" in done.stderr
    done = tricorn("load", "http://192.0.2.1/")
    assert done.returncode == 1
    assert "192.0.2.1:80 is another machine" in done.stderr


def test_messages_and_their_echoes(pool: Pool) -> None:
    server = pool.get("sockets:application", worker_class="asgi")
    done = tricorn("load", "--websocket", "-c", "3", "-z", "300ms", "--json", f"ws://127.0.0.1:{server.port}/echo")
    figures: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert figures["answered"] > 0
    assert figures["errors"] == {}


def test_a_program_is_told_how_it_goes_and_may_end_it(pool: Pool) -> None:
    server = pool.get()
    seen: list[Progress] = []

    def enough(progress: Progress) -> bool:
        seen.append(progress)
        return False

    result = run(Plan(targets=(Target(f"http://127.0.0.1:{server.port}/hello"),), connections=2, seconds=60.0), enough)
    assert result["stopped"]
    assert result.seconds < 30
    assert len(seen) == 1
    assert 0 < seen[0]["answered"] <= result.answered == result.histogram.count
