"""The report for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from tricorn_bench.bench import locust_figures
from tricorn_bench.bench.figures import BY_KEY, SHORT
from tricorn_bench.bench.report import layout, tables
from tricorn_bench.bench.result import Result

QUIET = 0.1
"""Share of a core that other programs may use before the report mentions it."""


def terminal(result: Result) -> str:
    parts = [title(result), ""]
    table = tables.main_table(result, SHORT)
    parts += [layout.plain(table.header, table.rows), ""]
    if verdicts := tables.verdicts(result):
        parts += [verdicts.title, layout.plain(verdicts.header, verdicts.rows), verdicts.note, ""]
    more_tables = (tables.theory_table, tables.parts_table, tables.locust_table, tables.failures_table)
    for more in (table(result) for table in more_tables):
        if more:
            parts += [more.title, layout.plain(more.header, more.rows), ""]
    parts += remarks(result)
    return "\n".join(parts).rstrip()


def markdown(result: Result, charts: Iterator[str] | None = None) -> str:
    """`charts` are names of files beside the page."""
    parts = [f"# {title(result)}", "", f"{result['made']}. {result['load']} Answer: {result['answer']}.", ""]
    parts += [f"![{name.removesuffix('.svg')}](charts/{name})" for name in charts or ()]
    for table in tables.all_tables(result):
        parts += [f"## {table.title}", "", layout.markdown(table.header, table.rows), ""]
        if table.note:
            parts += [table.note, ""]
    parts += [f"* {remark}" for remark in remarks(result)]
    parts += ["", "## Machine", "", *[f"* {key}: {value}" for key, value in result["machine"].items()]]
    parts += ["", "## Commands", "", f"* `{result['command']}`"]
    parts += [
        f"* {one['name']}{' ' + one['version'] if one['version'] else ''}: `{one['command']}`"
        for one in result["configurations"]
        if one["command"]
    ]
    return "\n".join([*parts, ""])


def title(result: Result) -> str:
    return f"{result['application']}: {result['preset'] or 'benchmark'}"


def remarks(result: Result) -> list[str]:
    """Returns caveats that a reader must know before trusting the figures."""
    found = [f"{one['name']} was not measured: {one['absent']}." for one in result["configurations"] if one["absent"]]
    rounds = [one for cell in result["cells"] for one in cell["rounds"]]
    disturbed = max((one["disturbance"] for one in rounds), default=0.0)
    if disturbed > QUIET:
        found.append(f"Other processes used up to {disturbed:.0%} of a core in a round: repeat on a quiet machine.")
    slow = [cell["configuration"] for cell in result["cells"] if any(map(_was_bottleneck, cell["rounds"]))]
    if slow:
        found.append(
            f"The load generator was the bottleneck under {', '.join(dict.fromkeys(slow))}: their requests/s show its "
            f"limit; compare {BY_KEY['cpu'].header} instead."
        )
    if any(one["load"]["late"] or one["load"]["unsent"] for one in rounds):
        late, unsent = (sum(one["load"][key] for one in rounds) for key in ("late", "unsent"))
        found.append(
            f"{late:,} requests were sent late, {unsent:,} not at all; latency counts from the scheduled time."
        )
    found += locust_figures.remarks(rounds)
    if len(rounds) == len(result["cells"]):
        found.append("One round does not show the variance: measure with --rounds 3 or more.")
    return [*found, *result["notes"]]


def _was_bottleneck(one: object) -> bool:
    assert isinstance(one, dict)
    return bool(one["load"]["generator"].get("bottleneck"))
