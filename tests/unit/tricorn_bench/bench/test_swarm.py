"""locust's command line, what it says when it fails, and its statistics as figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tricorn.config.addresses import TcpAddress
from tricorn_bench.bench import command, figures, locust_figures, swarm
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.locust_figures import Used
from tricorn_bench.bench.report import tables, text
from tricorn_bench.bench.swarm import Swarm
from tricorn_bench.load import Plan, Target

from tests.unit.tricorn_bench.bench.made import a_result, a_round

PLAN = Plan(targets=(Target("http://127.0.0.1:8001/x?y"),), connections=20, seconds=3.2, hatch_rate=5.0)
TOLD: dict[str, Any] = {
    "version": "2.47.0",
    "begun": 100.0,
    "ended": 104.0,
    "entries": [
        {
            "name": "/",
            "method": "GET",
            "requests": 90,
            "failures": 0,
            "response_times": [[2, 60], [10, 29], [170, 1]],
            "total_response_time": 900.0,
            "min_response_time": 1.6,
            "max_response_time": 166.2,
        },
        {
            "name": "/gone",
            "method": "POST",
            "requests": 10,
            "failures": 10,
            "response_times": [[4, 10]],
            "total_response_time": 40.0,
            "min_response_time": 3.5,
            "max_response_time": 4.4,
        },
        {
            "name": "/never",
            "method": "GET",
            "requests": 0,
            "failures": 0,
            "response_times": [],
            "total_response_time": 0.0,
            "min_response_time": 0,
            "max_response_time": 0,
        },
    ],
    "failures": [{"method": "POST", "name": "/gone", "error": "404 Not Found", "occurrences": 10}],
    "exceptions": [{"message": "division by zero", "count": 2, "traceback": "…"}],
}
IMPORTED = """\
Traceback (most recent call last):
  File "/usr/lib/locust/main.py", line 5, in main
  File "/site/locustfile.py", line 7, in <module>
    import nothing
ModuleNotFoundError: No module named 'nothing'
Exception ignored in: <function _removeHandlerRef>
RuntimeError: greenlet is being finalized
"""


def test_locust_gets_the_plan_and_its_place() -> None:
    words = Swarm("/site/locustfile.py", (1,)).command(PLAN)
    assert words[:5] == [sys.executable, "-m", "locust", "-f", f"/site/locustfile.py,{swarm.LISTENER}"]
    line = " ".join(words)
    assert "--host http://127.0.0.1:8001 --users 20 --spawn-rate 5 --run-time 4s" in line
    assert "--master" not in line
    assert "--processes" not in line


def test_several_processes_have_a_master_at_a_port_of_its_own() -> None:
    words = Swarm("locustfile.py", (1, 2), processes=2).command(PLAN)
    port = words[words.index("--master-port") + 1]
    assert words[-10:] == [
        *("--processes", "2", "--master-bind-host", "127.0.0.1", "--master-bind-port", port),
        *("--master-host", "127.0.0.1", "--master-port", port),
    ]


def test_workers_of_other_machines_are_waited_for_and_invited() -> None:
    one = Swarm("/site/locustfile.py", (1,), master=TcpAddress("192.0.2.1", 5557), workers=3)
    line = " ".join(one.command(PLAN))
    assert "--master --master-bind-host 192.0.2.1 --master-bind-port 5557 --expect-workers 3" in line
    assert "locust -f locustfile.py --worker --master-host 192.0.2.1 --master-port 5557" in one.invitation()


def test_what_locust_told_has_the_figures_of_any_load() -> None:
    load = locust_figures.load_of(TOLD, Used(cpu_seconds=2.0, bottleneck=True))
    one = a_round(load=load)
    assert (load["sent"], load["answered"], figures.failed(one)) == (100, 90, 10)
    assert figures.rate([one]) == 90 / 4
    latency = load["latency"]
    assert (latency["min"], latency["mean"], latency["max"]) == (0.0016, 0.0094, 0.1662)
    assert [round(latency[key], 3) for key in ("p50", "p90", "p99")] == [0.002, 0.010, 0.010]
    assert latency["p99.9"] == latency["max"]
    both = figures.BY_KEY["p50"].read([one, one])
    assert both is not None
    assert round(both) == 2


def test_its_names_stay_apart_in_the_report() -> None:
    load = locust_figures.load_of(TOLD, Used(2.0, False))
    result = a_result({"tricorn sync": [a_round(load=load), a_round(load=load)]})
    table = tables.locust_table(result)
    assert table is not None
    assert table.rows == (
        ("tricorn sync", "GET /", "180", "0", "10.0", "2", "10", "170"),
        ("", "POST /gone", "20", "20", "4.0", "4", "4", "4"),
    )
    told = text.terminal(result)
    assert "20 × POST /gone: 404 Not Found" in told
    assert "The locustfile raised 4 × division by zero." in told
    assert tables.locust_table(a_result()) is None


def test_an_error_of_the_locustfile_is_told_with_its_line() -> None:
    told = swarm._sentence(IMPORTED, "locustfile.py")
    assert told == "ModuleNotFoundError: No module named 'nothing' (locustfile.py:7)."
    assert swarm._sentence("\n  usage: …\nlocust: error: no\n", "locustfile.py") == "locust: error: no."
    assert swarm._sentence("", "locustfile.py") == "it said nothing."


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--users", "3"], "--users requires --locustfile"),
        (["--expect-workers", "3"], "--expect-workers requires --locustfile"),
        (["--locustfile", "no.py"], "The locustfile 'no.py' does not exist"),
        (["--locustfile", __file__, "--rate", "3"], "--locustfile cannot be combined with --rate"),
        (["--locustfile", __file__, "--websocket", "3"], "--locustfile and --websocket"),
        (["--locustfile", __file__, "--preset", "tails"], "--locustfile cannot be combined with the preset tails"),
        (["--locustfile", __file__, "--locust-master", "a"], "--locust-master and --expect-workers go together"),
        (["--preset", "users", "--budget", "60"], "users need the time in which they think"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["shop:app", *words]) == 1
    err = capsys.readouterr().err
    assert told in err
    assert len(err.strip().splitlines()) == 1


def test_without_locust_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(swarm, "find_spec", lambda _: None)
    with pytest.raises(BenchError, match=r"pip install 'tricorn\[locust\]'"):
        swarm.swarm_of(__file__, (0,), None, None, None)


@pytest.mark.parametrize("text", ["0.0.0.0:5557", "127.0.0.1:x", "unix:/x"])
def test_an_address_that_workers_cannot_reach_is_refused(text: str) -> None:
    with pytest.raises(BenchError, match=f"--locust-master {text}: "):
        swarm._address(text)
