"""Results that are made up: figures that can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tricorn_bench.bench.result import SCHEMA, Cell, Configured, Result, Round
from tricorn_bench.load import Histogram

MIB = 2**20


def a_round(
    micros: Sequence[int] = (1000,) * 100, *, seconds: float = 1.0, cpu: float = 0.1, pss: int = 20, **more: Any
) -> Round:
    """One in which the requests took these microseconds, below 2048 each; `pss` in MiB of two processes."""
    counts = [0] * 2048
    for one in micros:
        counts[one] += 1
    ordered = sorted(micros)
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
    latency = {name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e6 for name, share in shares.items()}
    latency.update(min=ordered[0] / 1e6, max=ordered[-1] / 1e6, mean=sum(ordered) / len(ordered) / 1e6)
    answered = len(micros)
    made: Round = {
        "load": {
            "seconds": seconds,
            "sent": answered,
            "answered": answered,
            "latency": latency,
            "histogram": Histogram(counts).encode(),
            "statuses": {"200": answered},
            "errors": {"connect": 0, "timeout": 0},
            "late": 0,
            "unsent": 0,
            "generator": {"cpu_seconds": 0.1, "bottleneck": False},
        },
        "cpu": {"total": cpu, "user": cpu * 0.75, "system": cpu * 0.25},
        "processes": [
            {"pid": 1, "name": "master", "pss": pss * MIB // 4, "uss": MIB, "rss": 30 * MIB, "threads": 1},
            {"pid": 2, "name": "worker", "pss": pss * MIB * 3 // 4, "uss": 2 * MIB, "rss": 40 * MIB, "threads": 5},
        ],
        "connections": 64,
        "parts": {"queue": 0.001, "application": 0.002, "rest": 0.0005, "gil": 0.0001},
        "database": None,
        "ready": 0.5,
        "disturbance": 0.01,
    }
    made.update(more)  # type: ignore[typeddict-item]
    return made


def configured(name: str, **more: Any) -> Configured:
    made: Configured = {
        "name": name,
        "family": name,
        "server": name.partition(" ")[0],
        "version": "1.0",
        "command": f"python -m {name}",
        "absent": None,
    }
    made.update(more)  # type: ignore[typeddict-item]
    return made


def a_result(cells: dict[str, list[Round]] | list[Cell] | None = None, **more: Any) -> Result:
    """`cells`: rounds by configuration."""
    if cells is None:
        cells = {
            "tricorn sync": [a_round(cpu=cpu) for cpu in (0.10, 0.11, 0.09)],
            "gunicorn sync": [a_round((1500,) * 50, cpu=cpu) for cpu in (0.20, 0.22, 0.18)],
        }
    if isinstance(cells, dict):
        cells = [{"configuration": name, "at": None, "rounds": rounds} for name, rounds in cells.items()]
    made: Result = {
        "schema": SCHEMA,
        "made": "2026-11-23 15:00:00 +0000",
        "application": "shop:app",
        "preset": None,
        "axis": None,
        "command": "tricorn bench shop:app",
        "load": "GET /; 64 connections, 3 s.",
        "machine": {"cpu": "a processor, 2 cores", "python": "CPython 3.11.7", "kernel": "Linux 6.1"},
        "answer": "status 200, 13 bytes",
        "configurations": [configured(cell["configuration"]) for cell in cells if cell["at"] in (None, cells[0]["at"])],
        "cells": cells,
        "theory": [],
        "notes": [],
    }
    made.update(more)  # type: ignore[typeddict-item]
    return made


def over_workers() -> Result:
    """A result with an axis: two lines of three points."""
    cells: list[Cell] = []
    names = []
    for server, speed in (("tricorn", 100), ("gunicorn", 20)):
        for count in (1, 2, 4):
            names.append(configured(f"{server} sync -w {count}", family=f"{server} sync"))
            rounds = [a_round((1000,) * (speed * count + extra)) for extra in (0, 1, 2)]
            cells.append({"configuration": f"{server} sync -w {count}", "at": float(count), "rounds": rounds})
    return a_result(cells, axis="workers", preset="Throughput for so many workers", configurations=names)
