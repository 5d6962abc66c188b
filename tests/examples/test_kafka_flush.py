"""What the page of examples/kafka_flush promises: a healed flush does what it says, and holds up no other request."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tricorn.control.client import Control

from tests.harness import GREEN_CLASSES, Server
from tests.harness.deadline import until
from tests.harness.needs import needs

KAFKA_FLUSH = Path(__file__).resolve().parents[2] / "examples" / "kafka_flush"
RTT = 0.2
SECONDS = 3

needs("confluent_kafka", "flask")

import confluent_kafka  # noqa: E402


def example(worker_class: str, *extra: str) -> Server:
    return Server("app:app", chdir=KAFKA_FLUSH, worker_class=worker_class, workers=2, extra=extra)


def load(server: Server, page: str, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tricorn", "load", "--json", "-z", f"{SECONDS}s", *options]
    url = f"http://127.0.0.1:{server.port}{page}"
    return subprocess.Popen([*command, url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def figures_of(run: subprocess.Popen[bytes]) -> Any:
    out, _ = run.communicate(timeout=60)
    return json.loads(out)


def under_load(*extra: str) -> tuple[Any, Any]:
    """The figures of /flush and of /ping."""
    with example("gevent", *extra) as server:
        assert server.get("/flush").json()["left"] == 0
        flushes, pings = load(server, "/flush", "-c", "20"), load(server, "/ping", "--rate", "50", "-c", "50")
        return figures_of(flushes), figures_of(pings)


def test_an_unrelated_request_and_the_flushes_themselves_are_faster_with_the_cure() -> None:
    needs("gevent")
    flushes, pings = under_load()
    healed_flushes, healed_pings = under_load("--doctor", "heal")
    for figures in (flushes, pings, healed_flushes, healed_pings):
        assert set(figures["statuses"]) == {"200"}
    assert healed_pings["latency"]["p99"] < pings["latency"]["p99"] / 4
    assert healed_flushes["rate"] > 2 * flushes["rate"]


def test_the_log_says_it_all_within_the_first_second_of_load(tmp_path: Path) -> None:
    needs("gevent")
    socket = tmp_path / "control"
    with example("gevent", "--control-socket", str(socket)) as server, ThreadPoolExecutor(20) as pool:
        serving = set(server.worker_pids())
        while serving:  # of a worker that has answered nothing yet nothing is told
            serving -= {answer["pid"] for answer in pool.map(lambda _: server.get("/flush").json(), range(2))}
        began = time.time()
        answers = list(pool.map(lambda _: server.get("/flush").json(), range(20)))
        lasted = time.time() - began
        assert all(answer["left"] == 0 for answer in answers)
        with Control.connect(socket) as control:
            until(lambda: control.ask("stalls")["stalls"], "a stall is kept")
            report = control.ask("stalls", records=True)
    (row,) = [row for row in report["stalls"] if row["c_function"] == "rd_kafka_flush"]
    assert row["file"].endswith("app.py")
    assert "producer.flush(" in row["source"]
    assert row["library_version"] == confluent_kafka.libversion()[0]
    assert row["package"] == {"name": "confluent-kafka", "version": confluent_kafka.version()}
    assert row["blocked"] >= 0.8, "the rest is other work of this machine"
    assert "poll(0)" in row["cure"]
    first = min(record["time"] for record in report["records"] if record["time"] >= began)
    assert first - began <= max(1.0, lasted * 3 / 4), "later only where the machine has other work"
    (line, *_) = server.log.matching(rf"blocked for .*rd_kafka_flush.*librdkafka {row['library_version']} .*flush\(.*")
    assert "poll(0)" in line[0]
    assert "--doctor heal" in line[0]


@GREEN_CLASSES
@pytest.mark.parametrize("setting", ["observe", "heal"])
def test_a_flush_delivers_and_reports_in_the_thread_of_the_request(worker_class: str, setting: str) -> None:
    with example(worker_class, "--doctor", setting) as server:
        answer = server.get("/flush").json()
    assert answer["left"] == 0
    (report,) = answer["reports"]
    assert report["error"] is None
    assert report["thread"] == answer["thread"]


def test_no_thread_of_the_server_is_in_the_arbiter() -> None:
    """A process that forks must have none, whatever its workers do."""
    needs("gevent")
    with example("gevent", "--doctor", "heal") as server:
        assert server.get("/flush").json()["left"] == 0
        tasks = len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))
    assert tasks == 1
