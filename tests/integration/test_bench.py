"""`tricorn bench` as a program: a measurement, what keeps it from being made, and what is left of it: nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tricorn_bench.bench import proc, result

from tests.harness import commands, until, with_each
from tests.harness.commands import ended
from tests.unit.tricorn_bench.bench.made import a_result

WORKS = """
import time
def app(environ, start_response):
    time.sleep(0.002)
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]
"""
FAILS = """
def app(environ, start_response):
    start_response("500 Internal Server Error", [("Content-Length", "0")])
    return []
"""
IMPORTS = """
import no_such_module
"""
HANGS = """
import time
time.sleep(60)
"""
COUNTS = """
def app(environ, start_response):
    with open("counted", "ab") as file:
        file.write(b".")
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]
"""
QUICK = ("--seconds", "0.4", "--warmup", "0.1", "-c", "8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    texts = {"works": WORKS, "fails": FAILS, "imports": IMPORTS, "hangs": HANGS, "counts": COUNTS}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def started(site: Path, *words: str) -> subprocess.Popen[str]:
    return commands.started("bench", site, *words)


@pytest.fixture(scope="module")
def measured(site: Path) -> tuple[int, str, str]:
    words = ("works:app", "sync", "gthread -w 2 --threads 2", "sync --no-such-flag", "--rounds", "2", *QUICK)
    conditions = ("--fail-if", "rate > 1", "--fail-if", "errors > 0")
    return ended(started(site, *words, *conditions, "-o", "report"))


def test_configurations_are_measured_in_turns_and_reported(measured: tuple[int, str, str], site: Path) -> None:
    _, out, err = measured
    found = result.read(site / "report/result.json")
    assert [cell["configuration"] for cell in found["cells"]] == ["tricorn sync", "tricorn gthread -w 2 --threads 2"]
    for cell in found["cells"]:
        assert len(cell["rounds"]) == 2
        for one in cell["rounds"]:
            assert one["load"]["statuses"] == {"200": one["load"]["answered"]}
            assert one["cpu"]["total"] > 0
            assert one["connections"] == 8
            assert one["parts"] is not None
            assert 0.002 < one["parts"]["application"] < 1
    several = found["cells"][1]["rounds"][0]["processes"]
    assert len(several) == 3
    assert sum(process["threads"] for process in several) >= 5
    assert all(0 < process["uss"] <= process["pss"] <= process["rss"] for process in several)
    assert "tricorn gthread -w 2 --threads 2" in out
    rounds = [line for line in err.splitlines() if line.startswith("round ")]
    assert [line.split()[1] for line in rounds if "tricorn" in line] == ["1", "1", "1", "2", "2"]


def test_what_was_measured_stays_and_only_what_is_missing_is_measured(
    measured: tuple[int, str, str], site: Path
) -> None:
    path = site / "report/result.json"
    before = result.read(path)
    words = ("gthread -w 2 --threads 2", "sync", "sync -w 2", "--rounds", "2", *QUICK, "-o", "report", "--resume")
    other = ended(started(site, "works:app", *words, "--path", "/other"))
    assert (other[0], result.read(path)) == (1, before)
    assert "cannot be resumed" in other[2]
    status, _, err = ended(started(site, "works:app", *words))
    assert status == 0, err
    assert [line for line in err.splitlines() if line.startswith("round ")] == [
        f"round {number} of 2: tricorn sync -w 2" for number in (1, 2)
    ]
    cells = {cell["configuration"]: cell for cell in result.read(path)["cells"]}
    assert len(cells.pop("tricorn sync -w 2")["rounds"]) == 2
    assert cells == {cell["configuration"]: cell for cell in before["cells"]}
    result.write(before, path)


def test_a_server_that_does_not_start_is_left_out_with_a_sentence(measured: tuple[int, str, str], site: Path) -> None:
    (absent,) = [one["absent"] for one in result.read(site / "report/result.json")["configurations"] if one["absent"]]
    assert absent.startswith("left with status 2: ")
    assert "--no-such-flag" in absent


def test_a_condition_that_holds_is_the_exit_status(measured: tuple[int, str, str]) -> None:
    status, out, _ = measured
    assert status == 5
    assert "Failed: tricorn sync: requests/s is" in out
    assert "(errors > 0)" not in out


@with_each(
    ("words", "told"),
    [
        (
            ("imports:app",),
            "Could not load the application 'imports:app': ModuleNotFoundError: No module named 'no_",
        ),
        (("fails:app", "sync"), "answers GET / with status 500 under tricorn sync"),
    ],
)
def test_what_is_in_the_way_is_one_sentence(site: Path, words: Sequence[str], told: str) -> None:
    status, out, err = ended(started(site, *words))
    assert status == 1, err
    assert out == ""
    said = err.partition("Error: ")[2]
    assert told in said
    assert len(said.strip().splitlines()) == 1


def test_a_port_in_use_is_told_before_anything_is_started(site: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, _, err = ended(started(site, "works:app", "sync", "--port", str(port)))
    assert status == 1
    assert f"Cannot listen on port {port}: Address already in use" in err


def test_a_database_that_is_down_is_told_before_anything_is_started(site: Path) -> None:
    status, _, err = ended(started(site, "works:app", "sync", "--db", "host=127.0.0.1 port=1 connect_timeout=2"))
    assert status == 1
    assert len(err.strip().splitlines()) == 1
    assert "Could not connect to the database of --db: " in err


@pytest.fixture
def running(site: Path) -> Iterator[subprocess.Popen[str]]:
    process = started(site, "works:app", "gthread -w 2", "--seconds", "60", "--warmup", "0", "-c", "8")
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(("number", "processes"), [(signal.SIGINT, 1), (signal.SIGTERM, 3)], ids=["starting", "loaded"])
def test_a_signal_ends_it_and_leaves_no_process(
    running: subprocess.Popen[str], number: signal.Signals, processes: int
) -> None:
    until(lambda: len(proc.descendants(running.pid)) >= processes, "the servers run")
    below = proc.descendants(running.pid)
    running.send_signal(number)
    status, out, err = ended(running)
    assert status == 128 + number
    assert out == ""
    assert err.strip().splitlines()[-1].startswith(f"Stopped by {number.name}")
    assert not [pid for pid in below if os.path.exists(f"/proc/{pid}")]


@with_each(
    ("words", "requests"),
    {
        "importing": (("hangs:app",), 0),
        "warming up": (("counts:app", "sync", "--warmup", "60", "--seconds", "1"), 50),
        "measuring": (("counts:app", "sync", "--warmup", "0", "--seconds", "60"), 50),
    },
)
def test_interrupted_in_any_phase_it_leaves_no_process(site: Path, words: Sequence[str], requests: int) -> None:
    counted = site / "counted"
    counted.write_bytes(b"")
    process = started(site, *words)
    try:
        until(lambda: proc.descendants(process.pid) and counted.stat().st_size >= requests, "it is there")
        below = proc.descendants(process.pid)
        process.send_signal(signal.SIGINT)
        status, out, err = ended(process)
    finally:
        process.kill()
    assert (status, out) == (130, "")
    assert err.splitlines()[-1] == "Stopped by SIGINT: all servers have been stopped; there is no report."
    assert "Traceback" not in err
    assert not [pid for pid in below if os.path.exists(f"/proc/{pid}")]


def test_interrupted_while_the_report_is_written(site: Path, tmp_path: Path) -> None:
    """Its first file is a FIFO, whose opening tells that it is there; its second one is never read."""
    result.write(a_result(), tmp_path / "made.json")
    report = tmp_path / "report"
    report.mkdir()
    for name in ("result.json.new", "report.md"):
        os.mkfifo(report / name)
    process = started(site, "--report", str(tmp_path / "made.json"), "-o", str(report))
    try:
        with (report / "result.json.new").open():
            process.send_signal(signal.SIGINT)
            status, _, err = ended(process)
    finally:
        process.kill()
    assert (status, err.strip()) == (130, "Stopped by SIGINT: the report is incomplete. No server was running.")


def test_when_it_is_killed_its_servers_end_too(running: subprocess.Popen[str]) -> None:
    until(lambda: len(proc.descendants(running.pid)) >= 3, "the servers run")
    below = proc.descendants(running.pid)
    running.kill()
    until(lambda: not any(map(proc.runs, below)), "they have ended")


def test_servers_over_tls(site: Path) -> None:
    """With a connection for each request: most of them resume, and none without resumption."""
    words = ("works:app", "gthread -w 1 --threads 2", "waitress", "--rounds", "1", *QUICK, "--tls", "--close")
    status, _, err = ended(started(site, *words, "-o", "tls"))
    assert status == 0, err
    found = result.read(site / "tls/result.json")
    (cell,) = found["cells"]
    load: dict[str, Any] = {**cell["rounds"][0]["load"]}
    assert load["statuses"] == {"200": load["answered"]}
    assert load["tls"]["resumed"]["count"] > load["tls"]["full"]["count"] > 0
    assert "over TLS (ECDSA certificate)" in found["load"]
    assert any(note.startswith("tricorn gthread -w 1 --threads 2: TLSv1.3; ") for note in found["notes"]), found[
        "notes"
    ]
    commands = {one["name"]: one["command"] or "" for one in found["configurations"]}
    assert "--certfile CERTIFICATE --keyfile KEY" in commands["tricorn gthread -w 1 --threads 2"]
    (absent,) = [one["absent"] for one in found["configurations"] if one["absent"]]
    assert "its command has no TLS" in absent or "is not installed" in absent
    more = ("sync", "--rounds", "1", *QUICK, "--tls", "--tls-key", "rsa", "--close", "--full-handshakes")
    status, _, err = ended(started(site, "works:app", *more, "-o", "full"))
    assert status == 0, err
    load = {**result.read(site / "full/result.json")["cells"][0]["rounds"][0]["load"]}
    assert load["tls"]["resumed"]["count"] == 0 < load["tls"]["full"]["count"]


def test_servers_over_http2(site: Path) -> None:
    """A server whose command can serve it does, and another one is left out with the reason."""
    words = ("works:app", "hypercorn", "waitress", "--rounds", "1", *QUICK, "--http2", "--streams", "4")
    status, _, err = ended(started(site, *words, "-o", "http2"))
    assert status == 0, err
    found = result.read(site / "http2/result.json")
    (cell,) = found["cells"]
    load = cell["rounds"][0]["load"]
    assert load["statuses"] == {"200": load["answered"]}
    assert "over HTTP/2; 8 connections with 4 streams each" in found["load"]
    (absent,) = [one["absent"] for one in found["configurations"] if one["absent"]]
    assert "its command has no HTTP/2" in absent or "is not installed" in absent
