"""Tables of a run: the recommended configuration beside the best, and the error of its prediction."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benches.harness.report import table
from benches.tune.cases import CASES, MEMORY, WITHOUT_COMPARISON, Case

MIB = 2**20
BY_NAME = {case.name: case for case in (*CASES, *WITHOUT_COMPARISON)}


def rate(row: Mapping[str, Any]) -> float:
    """Mean requests a second of a configuration."""
    return statistics.fmean(row["rates"])


def allowed(row: Mapping[str, Any], case: Case) -> bool:
    """Whether a measured configuration kept the limits of memory and database connections."""
    return bool(row["memory"] <= MEMORY and (case.database is None or (row["database"] or 0) <= case.database))


def recommended(row: Mapping[str, Any]) -> str:
    """Returns the configuration that tune recommends; empty if it recommends none."""
    return (row["answer"]["recommended"] or "").removeprefix("tricorn ")


def best(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the configuration of the comparison with the highest rate within the limits."""
    case = BY_NAME[row["case"]]
    return max((one for one in row["grid"] if allowed(one, case)), key=rate)


def ratio(row: Mapping[str, Any]) -> float | None:
    """Returns the rate of the recommended configuration by the best one's, both from the comparison."""
    name = recommended(row)
    found = next((one for one in row["grid"] if one["configuration"] == name), None)
    return None if found is None else rate(found) / rate(best(row))


def error(row: Mapping[str, Any]) -> float | None:
    """Returns the relative error of the recommended configuration's predicted rate."""
    name = row["answer"]["recommended"]
    found: float | None = next(
        (one["error"] for one in row["answer"]["measured"] if one["configuration"] == name), None
    )
    return found


def largest_error(row: Mapping[str, Any]) -> float | None:
    """Returns the largest relative error of all configurations that tune measured."""
    errors = [one["error"] for one in row["answer"]["measured"] if one["error"] is not None]
    return max(errors, key=abs, default=None)


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """A row for each application that was compared."""
    header = ("A request", "highest rate", "recommended", "best", "ratio", "prediction error", "largest")
    lines = []
    for row in rows:
        if row["grid"]:
            case, top = BY_NAME[row["case"]], best(row)
            lines.append(
                (
                    case.question,
                    case.best,
                    f"`{recommended(row)}`" if recommended(row) else "none",
                    f"`{top['configuration']}`, {rate(top):,.0f}/s",
                    *("–" if found is None else f"{found:.2f}" for found in (ratio(row),)),
                    *("–" if found is None else f"{found:+.0%}" for found in (error(row), largest_error(row))),
                )
            )
    return table(header, lines)


def grid(rows: Sequence[Mapping[str, Any]]) -> str:
    """Every configuration of the comparison, the highest rates first."""
    header = ("configuration", "requests/s", "least", "most", "MiB", "connections", "within limits")
    parts = []
    for row in rows:
        case = BY_NAME[row["case"]]
        lines = [
            (
                one["configuration"],
                *(f"{value:,.0f}" for value in (rate(one), min(one["rates"]), max(one["rates"]))),
                f"{one['memory'] / MIB:,.0f}",
                "" if one["database"] is None else str(one["database"]),
                "yes" if allowed(one, case) else "no",
            )
            for one in sorted(row["grid"], key=rate, reverse=True)
        ]
        if lines:
            parts.append(f"### {case.question}\n\n{table(header, lines)}")
    return "\n\n".join(parts)


def page(rows: Sequence[Mapping[str, Any]], environment: Mapping[str, str]) -> str:
    answers = [f"### {row['command']}\n\n```text\n{row['text'].strip()}\n```" for row in rows]
    described = "\n".join(f"* {key}: {value}" for key, value in environment.items())
    parts = ["# tricorn tune beside the best of an exhaustive comparison", summary(rows), "## Compared", grid(rows)]
    return "\n\n".join([*parts, "## Answers", *answers, "## Environment", described]) + "\n"
