"""The table that compares recommendations of tricorn tune with the best of an exhaustive comparison."""

from __future__ import annotations

from typing import Any

import pytest

from benches.tune import table
from benches.tune.cases import CASES, MEMORY

MIB = 2**20


def row(recommended: str | None, **rates: tuple[list[float], int, int | None]) -> dict[str, Any]:
    """`rates`: name of a configuration with `_` for a space, its rates, memory and connections."""
    grid = [
        {"configuration": name.replace("_", " "), "rates": values, "memory": memory, "database": database}
        for name, (values, memory, database) in rates.items()
    ]
    measured = [{"configuration": f"tricorn {recommended}", "error": 0.04}, {"configuration": "other", "error": -0.3}]
    answer = {"recommended": f"tricorn {recommended}" if recommended else None, "measured": measured}
    return {"case": "pool", "command": "tricorn tune", "text": "", "answer": answer, "grid": grid}


ROW = row(
    "gevent",
    gevent=([95.0, 97.0], 50 * MIB, 20),
    sync=([100.0], 60 * MIB, 20),
    gthread=([400.0], 60 * MIB, 21),
    large=([500.0], MEMORY + 1, 20),
)


def test_the_best_keeps_the_limits() -> None:
    """400 a second take one connection too many, 500 too much memory."""
    assert table.best(ROW)["configuration"] == "sync"


def test_the_ratio_compares_means_of_the_comparison() -> None:
    assert table.ratio(ROW) == pytest.approx(0.96)


def test_errors_of_the_recommended_one_and_of_the_worst() -> None:
    assert (table.error(ROW), table.largest_error(ROW)) == (0.04, -0.3)


def test_without_a_recommendation_there_is_no_ratio() -> None:
    refused = row(None, sync=([100.0], 60 * MIB, 20))
    assert (table.ratio(refused), table.error(refused)) == (None, None)
    assert "| none |" in " ".join(table.summary([refused]).split())


def test_every_application_is_named_once() -> None:
    assert len(table.BY_NAME) >= len(CASES) == 8
