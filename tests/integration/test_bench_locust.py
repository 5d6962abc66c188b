"""`tricorn bench --locustfile`: locust drives the measurement, alone and with workers; nothing is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn_bench.bench import proc, result

from tests.harness import until
from tests.harness.server import free_port
from tests.integration.test_bench import WORKS, ended, started

LOCUSTFILE = """
from locust import HttpUser, constant, task

class Visitor(HttpUser):
    wait_time = constant(0.02)

    @task(3)
    def home(self):
        self.client.get("/")

    @task
    def search(self):
        with self.client.get("/search?q=1", name="/search", catch_response=True) as response:
            response.failure("nothing found")
"""
ONE = ("works:app", "sync", "--locustfile", "locustfile.py", "--rounds", "1", "--warmup", "0", "--seconds", "1")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "works.py").write_text(WORKS)
    (folder / "locustfile.py").write_text(LOCUSTFILE)
    (folder / "fails.py").write_text("import locust\n\nlocust.no_such_thing\n")
    return folder


@pytest.fixture
def workers(site: Path) -> Iterator[str]:
    """Two, as on other machines; where they look for their master."""
    address = f"127.0.0.1:{free_port()}"
    words = ["--worker", "--master-host", "127.0.0.1", "--master-port", address.rpartition(":")[2]]
    several = [
        subprocess.Popen(
            [sys.executable, "-m", "locust", "-f", "locustfile.py", *words],
            cwd=site,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    yield address
    for one in several:
        one.kill()
        one.wait()


def test_a_master_and_its_workers_measure_and_their_names_are_in_the_report(site: Path, workers: str) -> None:
    # Long enough for a busy machine to start the users on both workers.
    more = ("--seconds", "3", "--users", "6", "--locust-master", workers, "--expect-workers", "2", "-o", "report")
    status, out, err = ended(started(site, *ONE, *more))
    assert status == 0, err
    assert f"--worker --master-host 127.0.0.1 --master-port {workers.rpartition(':')[2]}" in err
    found = result.read(site / "report/result.json")
    (one,) = found["cells"][0]["rounds"]
    load = one["load"]
    names = {name["name"]: name for name in load["generator"]["names"]}
    assert set(names) == {"/", "/search"}
    assert load["sent"] == names["/"]["requests"] + names["/search"]["requests"]
    assert list(load["errors"].values()) == [names["/search"]["requests"]]
    assert load["answered"] == names["/"]["requests"] > 0
    assert 0.002 < load["latency"]["min"] <= load["latency"]["p50"] <= load["latency"]["max"]
    assert one["cpu"]["total"] > 0
    assert "on 2 workers: 6 users of locustfile.py" in found["load"]
    assert "GET /search" in out


def test_a_locustfile_with_an_error_is_told_before_anything_is_started(site: Path) -> None:
    status, out, err = ended(started(site, "works:app", "sync", "--locustfile", "fails.py"))
    assert (status, out) == (1, "")
    assert err.strip() == (
        "Error: Could not import the locustfile 'fails.py': AttributeError: module 'locust' has no attribute "
        "'no_such_thing' (fails.py:3)."
    )


def test_interrupted_it_leaves_no_locust(site: Path) -> None:
    process = started(site, *ONE[:-1], "60", "--users", "2", "--locust-processes", "2")
    try:
        until(lambda: count_locusts(process.pid) == 3, "a master and two workers run", within=120)
        below = proc.descendants(process.pid)
        process.send_signal(signal.SIGINT)
        status, _, err = ended(process)
    finally:
        process.kill()
    assert status == 130, err
    assert not [pid for pid in below if os.path.exists(f"/proc/{pid}")]


def count_locusts(pid: int) -> int:
    return sum("--headless" in arguments(below) for below in proc.descendants(pid))


def arguments(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except proc.GONE:
        return ""
