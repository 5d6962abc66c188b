"""The report as text."""

from __future__ import annotations

from tricorn_bench.bench.report import tables, text

from tests.unit.tricorn_bench.bench.made import a_result, a_round, configured, over_workers


def rows(report: str) -> dict[str, list[str]]:
    """Cells of a terminal's table by the first one; two blanks are between cells."""
    lines = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in report.splitlines()]
    return {line[0]: line[1:] for line in reversed(lines) if line}


def test_the_terminal_has_a_row_for_each_configuration() -> None:
    shown = rows(text.terminal(a_result()))
    assert shown["configuration"][:4] == ["requests/s", "CPU µs/request", "p50 ms", "p90 ms"]
    assert shown["tricorn sync"][:2] == ["100", "1,000.0"] or shown["tricorn sync"][:2] == ["100", "1,000"]
    assert shown["gunicorn sync"][:3] == ["50", "4,000", "1.50"]


def test_verdicts_are_beside_the_first_configuration() -> None:
    table = tables.verdicts(a_result())
    assert table is not None
    assert table.title == "Relative to tricorn sync"
    assert table.rows[0][:3] == ("gunicorn sync", "× 0.50 (0.50–0.50) worse", "× 4.00 (4.00–4.00) worse")


def test_over_an_axis_each_point_is_beside_the_one_at_its_place() -> None:
    table = tables.verdicts(over_workers())
    assert table is not None
    assert [row[:2] for row in table.rows] == [(f"gunicorn sync -w {count}", str(count)) for count in (1, 2, 4)]


def test_what_weakens_the_figures_is_remarked() -> None:
    disturbed = a_round(disturbance=0.4)
    disturbed["load"]["generator"]["bottleneck"] = True
    disturbed["load"]["late"] = 7
    absent = [configured("tricorn sync"), configured("waitress", absent="waitress is not installed")]
    told = "\n".join(text.remarks(a_result({"tricorn sync": [disturbed]}, configurations=absent)))
    assert "waitress was not measured: waitress is not installed." in told
    assert "up to 40% of a core" in told
    assert "bottleneck under tricorn sync" in told
    assert "7 requests were sent late" in told
    assert "One round does not show the variance" in told
    assert text.remarks(a_result()) == []


def test_errors_are_told_by_kind() -> None:
    failing = a_round()
    failing["load"].update(statuses={"200": 90, "503": 10}, errors={"timeout": 2, "connect": 0})
    table = tables.failures_table(a_result({"tricorn sync": [failing, failing]}))
    assert table is not None
    assert table.rows == (("tricorn sync", "4 × timeout, 20 × status 503"),)


def test_latencies_stand_beside_those_of_theory() -> None:
    result = over_workers()
    result["theory"] = [{"configuration": "tricorn sync -w 2", "at": 2.0, "p50": 0.001, "p95": 0.002, "p99": 0.003}]
    table = tables.theory_table(result)
    assert table is not None
    assert table.rows == (("tricorn sync -w 2", "2", "1.00", "1.00", "1.00", "2.00", "1.00", "3.00"),)


def test_markdown_has_every_table_and_the_commands() -> None:
    page = text.markdown(a_result(), iter(["rate.svg"]))
    assert "![rate](charts/rate.svg)" in page
    assert "| gunicorn sync |" in page
    assert "* tricorn sync 1.0: `python -m tricorn sync`" in page
    assert all(f"## {table.title}" in page for table in tables.all_tables(a_result()))
