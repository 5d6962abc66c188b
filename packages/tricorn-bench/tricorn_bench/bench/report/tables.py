"""Tables: what every form of a report shows, as texts in rows."""

from __future__ import annotations

from collections.abc import Sequence

from tricorn_bench.bench import locust_figures, spread
from tricorn_bench.bench.figures import BY_KEY, FIGURES, Figure
from tricorn_bench.bench.report.layout import Table
from tricorn_bench.bench.result import Cell, Result, configured


def main_table(result: Result, keys: Sequence[str]) -> Table:
    """A row for each cell; columns that no cell has a value for are left out."""
    figures = [BY_KEY[key] for key in keys]
    values = [[figure.read(cell["rounds"]) for figure in figures] for cell in result["cells"]]
    used = [place for place in range(len(figures)) if any(row[place] is not None for row in values)]
    names = names_of(result)
    header = (*names[0], *(figures[place].header for place in used))
    rows = [
        (*name, *(figures[place].shown(row[place]) for place in used))
        for name, row in zip(names[1:], values, strict=True)
    ]
    return Table("All figures", header, tuple(rows))


def names_of(result: Result) -> list[tuple[str, ...]]:
    """The header of the columns that name a cell, then each cell's."""
    axis = result["axis"]
    if axis is None:
        return [("configuration",), *((cell["configuration"],) for cell in result["cells"])]
    return [("configuration", axis), *((cell["configuration"], at_of(cell)) for cell in result["cells"])]


def at_of(cell: Cell) -> str:
    return "" if cell["at"] is None else f"{cell['at']:,g}"


VERDICTS = ("rate", "cpu", "p50", "p99", "pss")
"""The figures whose ratios are told."""

TOO_WIDE = 20
"""Times its lower end: an interval that says nothing but that there were too few rounds."""


def verdicts(result: Result) -> Table | None:
    """Each cell beside the first one of its place on the axis; None if there is nothing to compare."""
    bases: dict[float | None, Cell] = {}
    rows = []
    for cell in result["cells"]:
        base = bases.setdefault(cell["at"], cell)
        if base is cell:
            continue
        name = (cell["configuration"], at_of(cell)) if result["axis"] else (cell["configuration"],)
        ratios = [ratio_of(BY_KEY[key], base, cell, paired=True) for key in VERDICTS]
        rows.append((*name, *(shown(ratio, BY_KEY[key]) for ratio, key in zip(ratios, VERDICTS, strict=True))))
    if not rows:
        return None
    columns = ("configuration", result["axis"]) if result["axis"] else ("configuration",)
    first = configured(result)[next(iter(bases.values()))["configuration"]]["family"]
    note = (
        "The first number is the ratio, the range its 95 % interval (bootstrap over rounds); 'noise' where "
        "the rounds do not tell the two apart."
    )
    header = (*(column or "" for column in columns), *(BY_KEY[key].label for key in VERDICTS))
    return Table(f"Relative to {first}", header, tuple(rows), note)


def ratio_of(figure: Figure, base: Cell, other: Cell, *, paired: bool) -> spread.Ratio | None:
    return spread.ratio(figure.per_round(base["rounds"]), figure.per_round(other["rounds"]), paired=paired)


def shown(ratio: spread.Ratio | None, figure: Figure) -> str:
    if ratio is None:
        return "–"
    text = f"× {ratio.value:.2f}"
    if ratio.rounds < 2:
        return text
    if ratio.high < TOO_WIDE * ratio.low:
        text += f" ({ratio.low:.2f}–{ratio.high:.2f})"
    return text + (" noise" if ratio.noise else f" {judged(ratio, figure)}")


def judged(ratio: spread.Ratio, figure: Figure) -> str:
    return "better" if (ratio.value > 1) == (figure.better == "more") else "worse"


def parts_table(result: Result) -> Table | None:
    """Returns a table of where the time of tricorn's requests went."""
    rows = []
    names = names_of(result)
    for name, cell in zip(names[1:], result["cells"], strict=True):
        parts = [one["parts"] for one in cell["rounds"] if one["parts"] is not None]
        if parts:
            means = (
                sum(part[key] for part in parts) / len(parts) * 1e3 for key in ("queue", "application", "rest", "gil")
            )
            rows.append((*name, *(f"{mean:,.3f}" for mean in means)))
    header = (*names[0], "queue ms", "application ms", "reading and writing ms", "GIL ms")
    note = (
        "Means of a request in the server: waiting for a worker, in the application, the rest; and for how long its "
        "thread waited for the GIL before it could begin (sync, gthread)."
    )
    return Table("Where the time goes", header, tuple(rows), note) if rows else None


def processes_table(result: Result) -> Table:
    """Returns the memory of each process in the last round, as smem prints it."""
    rows = []
    names = names_of(result)
    for name, cell in zip(names[1:], result["cells"], strict=True):
        for place, process in enumerate(cell["rounds"][-1]["processes"]):
            sizes = (f"{process[key] / 2**20:,.1f}" for key in ("uss", "pss", "rss"))
            label = name if place == 0 else ("",) * len(name)
            rows.append((*label, process["name"], *sizes, str(process["threads"])))
    header = (*names[0], "process", "USS MiB", "PSS MiB", "RSS MiB", "threads")
    return Table("Processes", header, tuple(rows), "In the last round, at the end of the load.")


def rounds_table(result: Result) -> Table:
    keys = ("rate", "cpu", "p50", "p99", "max", "errors")
    rows = []
    names = names_of(result)
    for name, cell in zip(names[1:], result["cells"], strict=True):
        for place, one in enumerate(cell["rounds"]):
            figures = (BY_KEY[key].shown(BY_KEY[key].read([one])) for key in keys)
            label = name if place == 0 else ("",) * len(name)
            rows.append((*label, str(place + 1), *figures, f"{one['disturbance']:.0%}"))
    header = (*names[0], "round", *(BY_KEY[key].header for key in keys), "others used")
    note = "'others used' is the part of a core that neither server nor load generator had."
    return Table("Rounds", header, tuple(rows), note)


def failures_table(result: Result) -> Table | None:
    rows = []
    names = names_of(result)
    for name, cell in zip(names[1:], result["cells"], strict=True):
        kinds: dict[str, int] = {}
        for one in cell["rounds"]:
            for kind, count in one["load"]["errors"].items():
                kinds[kind] = kinds.get(kind, 0) + count
            for status, count in one["load"]["statuses"].items():
                if status[:1] not in ("1", "2", "3"):
                    kinds[f"status {status}"] = kinds.get(f"status {status}", 0) + count
        told = ", ".join(f"{count:,} × {kind}" for kind, count in kinds.items() if count)
        if told:
            rows.append((*name, told))
    return Table("Errors", (*names[0], "errors"), tuple(rows)) if rows else None


def locust_table(result: Result) -> Table | None:
    """A line for each name of locust's statistics."""
    rows = []
    names = names_of(result)
    for label, cell in zip(names[1:], result["cells"], strict=True):
        for place, one in enumerate(locust_figures.names_of(cell["rounds"])):
            times = (f"{locust_figures.milliseconds(one.times, share):,}" for share in (50, 90, 99))
            told = (f"{one.requests:,}", f"{one.failures:,}", f"{one.mean * 1e3:,.1f}", *times)
            rows.append((*(label if place == 0 else ("",) * len(label)), f"{one.method} {one.name}", *told))
    header = (*names[0], "name", "requests", "failures", "mean ms", "p50 ms", "p90 ms", "p99 ms")
    return Table("By locust name", header, tuple(rows), locust_figures.ROUNDED) if rows else None


def theory_table(result: Result) -> Table | None:
    """Latencies beside those of M/M/W."""
    expected = {(one["configuration"], one["at"]): one for one in result["theory"]}
    rows = []
    for cell in result["cells"]:
        one = expected.get((cell["configuration"], cell["at"] or 0.0))
        if one is None:
            continue
        pairs = []
        for key in ("p50", "p95", "p99"):
            pairs += [BY_KEY[key].shown(BY_KEY[key].read(cell["rounds"])), f"{one[key] * 1e3:,.2f}"]
        rows.append((cell["configuration"], at_of(cell), *pairs))
    header = (
        "configuration",
        result["axis"] or "",
        *(text for key in ("p50", "p95", "p99") for text in (f"{key} ms", "M/M/W")),
    )
    note = "M/M/W: one queue, exponential service times, the measured capacity; W from the time of a single request."
    return Table("Compared with theory", header, tuple(rows), note) if rows else None


def spread_table(result: Result) -> Table:
    """Returns the minimum and maximum of the rounds for each level of load."""
    rows = []
    names = names_of(result)
    for name, cell in zip(names[1:], result["cells"], strict=True):
        texts = []
        for key in ("rate", "p50", "p95", "p99"):
            figure = BY_KEY[key]
            values = figure.per_round(cell["rounds"])
            texts.append(f"{figure.shown(min(values))}–{figure.shown(max(values))}" if values else "–")
        rows.append((*name, *texts))
    header = (*names[0], *(BY_KEY[key].header for key in ("rate", "p50", "p95", "p99")))
    return Table("Range of the rounds", header, tuple(rows))


def all_tables(result: Result) -> list[Table]:
    found = [
        main_table(result, [figure.key for figure in FIGURES]),
        verdicts(result),
        theory_table(result),
        parts_table(result),
        locust_table(result),
        failures_table(result),
        spread_table(result),
        processes_table(result),
        rounds_table(result),
    ]
    return [table for table in found if table is not None]
