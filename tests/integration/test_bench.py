"""`tricorn bench` as a program: a measurement, what keeps it from being made, and what is left of it: nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tricorn.bench import proc, result

from tests.harness import until, with_each

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
QUICK = ("--seconds", "0.4", "--warmup", "0.1", "-c", "8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name, text in (("works", WORKS), ("fails", FAILS), ("imports", IMPORTS)):
        (folder / f"{name}.py").write_text(text)
    return folder


def started(site: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tricorn", "bench", *words],
        cwd=site,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


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
        (("imports:app",), "'imports:app' cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
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
    assert f"Port {port} cannot be listened on: Address already in use" in err


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


def test_when_it_is_killed_its_servers_end_too(running: subprocess.Popen[str]) -> None:
    until(lambda: len(proc.descendants(running.pid)) >= 3, "the servers run")
    below = proc.descendants(running.pid)
    running.kill()
    until(
        lambda: not [pid for pid in below if (fields := proc.stat_fields(pid)) and fields[0] != "Z"], "they have ended"
    )
