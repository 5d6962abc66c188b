"""Two results beside each other, and conditions."""

from __future__ import annotations

import pytest
from tricorn_bench.bench import compare
from tricorn_bench.bench.compare import Condition
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.result import Result

from tests.harness import with_each
from tests.unit.tricorn_bench.bench.made import a_result, a_round

SLOWER = 1200


def of(*micros: int, errors: int = 0) -> Result:
    """A round for each, whose requests all took so long."""
    rounds = [a_round((one,) * 100) for one in micros]
    rounds[0]["load"]["errors"] = {"timeout": errors}
    return a_result({"tricorn sync": rounds})


def broken(text: str, base: Result | None, other: Result) -> list[str]:
    return compare.broken([Condition.parse(text)], base, other)


def test_a_condition_holds_when_a_figure_is_beyond_it_and_the_rounds_agree() -> None:
    base, slower = of(1000, 1001, 1002), of(SLOWER, SLOWER + 1, SLOWER + 2)
    assert broken("p99 > 1.1x", base, slower) == ["tricorn sync: p99 is × 1.20 (1.20–1.20) worse (p99 > 1.1x)"]
    assert broken("p99 > 1.3x", base, slower) == []
    assert broken("p99 < 0.9x", slower, base) != []


def test_noise_fails_no_build() -> None:
    assert broken("p99 > 1.1x", of(1000, 700, 1400), of(1000, 1900, 1300)) == []


def test_limits_may_be_numbers_with_units() -> None:
    result = of(1000, 1000, errors=3)
    assert broken("p99 > 0.9ms", None, result) == ["tricorn sync: p99 is 1.00 ms (p99 > 0.9ms)"]
    assert broken("p99 > 0.0009s", None, result) != []
    assert broken("p99 > 1.1ms", None, result) == []
    assert broken("errors > 0", None, result) == ["tricorn sync: errors is 3 (errors > 0)"]
    assert broken("rate < 1000", None, result) != []


def test_within_one_result_ratios_are_to_its_first_configuration() -> None:
    assert broken("cpu > 1.5x", None, a_result()) == ["gunicorn sync: CPU is × 4.00 (4.00–4.00) worse (cpu > 1.5x)"]


@with_each(
    ("text", "told"),
    {
        "p99 larger 3": "Invalid condition",
        "p98 > 1x": "Unknown figure 'p98'.*did you mean 'p9",
        "p99 > 3MiB": "has the unit 'mib'; p99 is in ms",
        "pss > 1.2.3x": "Invalid number",
    }.items(),
)
def test_what_is_no_condition_is_told(text: str, told: str) -> None:
    with pytest.raises(BenchError, match=told):
        Condition.parse(text)


def test_the_table_has_ratios_and_says_which_are_noise() -> None:
    table = compare.table(of(1000, 1001, 1002), of(SLOWER, SLOWER + 1, SLOWER + 2))
    (row,) = table.rows
    cells = dict(zip(table.header, row, strict=True))
    assert cells["p99"] == "× 1.20 (1.20–1.20) worse"
    assert cells["CPU"] == "× 1.00 (1.00–1.00) noise"


def test_results_without_a_common_configuration_are_refused() -> None:
    with pytest.raises(BenchError, match="no configuration in common: one has tricorn sync, the other one uvicorn"):
        compare.pairs(of(1000), a_result({"uvicorn": [a_round()]}))


def test_other_machines_and_loads_are_warned_of() -> None:
    other = a_result({"uvicorn": [a_round()]}, machine={"cpu": "another"}, load="POST /")
    told = "\n".join(compare.warnings(a_result(), other))
    assert "cpu was a processor, 2 cores, and is another" in told
    assert "The loads differ" in told
    assert "Only the first result has gunicorn sync, tricorn sync" in told
