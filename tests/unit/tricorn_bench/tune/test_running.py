from __future__ import annotations

import os
from typing import Any

import pytest
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.tune import running
from tricorn_bench.tune.model import Limits
from tricorn_bench.tune.running import Observed

MIB = 2**20


class Server:
    """Answers like a control socket."""

    def __init__(self, worker_class: str, requests: int, *, spent: float = 0.05, cpu: float = 0.002) -> None:
        pid = os.getpid()
        figures = {
            "requests": requests,
            "cpu_nanoseconds": cpu * 1e9 * requests,
            "call_blocked_nanoseconds": (spent - cpu) * 1e9 * requests,
            "loop_blocked_nanoseconds": 0,
            "databases": 3,
        }
        row = {"state": "serving", "pid": pid, "threads": 1, "figures": figures}
        self.answers: dict[str, dict[str, Any]] = {
            "status": {"app": "shop:app", "class": worker_class, "pid": pid, "workers": {"target": 4}},
            "stats": {"uptime": 100.0, "figures": figures},
            "workers": {"workers": [row, {**row, "state": "leaving"}]},
            "routes": {"routes": [{"requests": requests, "seconds": spent * requests}]},
        }

    def ask(self, word: str) -> dict[str, Any]:
        return self.answers[word]


def test_what_a_server_says_of_itself() -> None:
    seen = running.observe(Server("sync", 5_000))
    assert (seen.workers, seen.requests, seen.rate) == (4, 5_000, pytest.approx(50.0))
    assert (seen.spent, seen.cpu) == (pytest.approx(0.05), pytest.approx(0.002))
    assert seen.connections == 3
    assert seen.confidence == "fair"


def test_too_few_requests() -> None:
    with pytest.raises(BenchError, match=r"has answered only 99 requests .*; 100 are needed"):
        running.observe(Server("sync", 99))


def test_a_class_without_a_model() -> None:
    with pytest.raises(BenchError, match="No model for the worker class 'hosted'"):
        running.observe(Server("hosted", 5_000))


def observed(**changes: Any) -> Observed:
    fields: dict[str, Any] = {
        "application": "shop:app",
        "worker_class": "sync",
        "workers": 4,
        "threads": 1,
        "seconds": 100.0,
        "requests": 20_000,
        "rate": 70.0,
        "spent": 0.05,
        "cpu": 0.002,
        "blocked": 0.048,
        "memory": 200 * MIB,
        "worker": 30 * MIB,
        "connections": None,
    }
    return Observed(**fields | changes)


class TestAdvice:
    def test_waiting_under_sync_asks_for_threads(self) -> None:
        text = " ".join(running.advice(observed(), Limits(4.0)))
        assert "70.0 requests/s on average, 88% of the 80" in text
        assert "waits for 96% of its time. tricorn gthread -w 4 --threads 32" in text
        assert "-w 5 would leave" in text

    def test_a_loop_that_is_blocked(self) -> None:
        text = " ".join(running.advice(observed(worker_class="asgi", blocked=0.01), Limits(4.0)))
        assert "block the event loop for 10 ms of each request" in text

    def test_busy_processors(self) -> None:
        text = " ".join(running.advice(observed(spent=0.01, cpu=0.01, blocked=0.0, rate=100), Limits(4.0)))
        assert "The CPUs are the limit" in text

    def test_an_idle_server_needs_nothing(self) -> None:
        assert len(running.advice(observed(spent=0.004, rate=1.0), Limits(4.0))) == 1
