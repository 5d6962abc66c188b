"""Two results beside each other, and conditions that a figure has to keep: `--compare`, `--fail-if`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tricorn.record import Record
from tricorn.spelling import hint
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.figures import BY_KEY, Figure
from tricorn_bench.bench.report import tables
from tricorn_bench.bench.report.layout import Table
from tricorn_bench.bench.result import Cell, Result

Pair = tuple[Cell, Cell]
COMPARED = ("rate", "cpu", "p50", "p90", "p99", "max", "pss")
UNITS = {"": None, "x": None, "ms": "ms", "s": "ms", "µs": "µs/request", "us": "µs/request", "mib": "MiB"}


class Condition(Record):
    """`p99 > 1.1x`, `p99 > 50ms`, `errors > 0`: what must not be."""

    figure: Figure
    above: bool
    limit: float
    relative: bool
    text: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        match = re.fullmatch(r"\s*([\w./]+)\s*([<>])\s*([\d.]+)\s*(x|[a-zµ]*)\s*", text, re.IGNORECASE)
        if not match:
            raise BenchError(f"Invalid condition {text!r}: expected, for example, 'p99 > 1.1x' or 'errors > 0'.")
        key, sign, number, unit = match.groups()
        if key not in BY_KEY:
            raise BenchError(f"Unknown figure {key!r}: expected one of {', '.join(BY_KEY)}{hint(key, BY_KEY)}")
        figure, unit = BY_KEY[key], unit.lower()
        try:
            limit = float(number)
        except ValueError:
            raise BenchError(f"Invalid number {number!r} in the condition {text!r}.") from None
        if unit not in UNITS or (UNITS[unit] or figure.unit) != figure.unit:
            raise BenchError(f"The condition {text!r} has the unit {unit!r}; {key} is in {figure.unit or 'numbers'}.")
        return cls(figure, sign == ">", limit * (1000 if unit == "s" else 1), unit == "x", text.strip())

    def broken_by(self, name: str, base: Cell | None, cell: Cell, *, paired: bool) -> str | None:
        """Returns a sentence for a cell beyond the limit; None if it is within, or the difference may be noise."""
        if not self.relative:
            value = self.figure.read(cell["rounds"])
            if value is None or not self._is_beyond(value):
                return None
            return f"{name}: {self.figure.label} is {self.figure.shown(value)} {self.figure.unit}".rstrip()
        ratio = tables.ratio_of(self.figure, base, cell, paired=paired) if base is not None else None
        if ratio is None or ratio.noise or not self._is_beyond(ratio.value):
            return None
        return f"{name}: {self.figure.label} is {tables.shown(ratio, self.figure)}"

    def _is_beyond(self, value: float) -> bool:
        return value > self.limit if self.above else value < self.limit


def pairs(base: Result, other: Result) -> list[Pair]:
    """Cells of the same configuration and place. Raises BenchError if there are none."""
    bases = {(cell["configuration"], cell["at"]): cell for cell in base["cells"]}
    found = [(bases[key], cell) for cell in other["cells"] if (key := (cell["configuration"], cell["at"])) in bases]
    if not found:
        ours, theirs = ({cell["configuration"] for cell in result["cells"]} for result in (base, other))
        raise BenchError(
            f"The results have no configuration in common: one has {', '.join(sorted(ours))}, "
            f"the other one {', '.join(sorted(theirs))}."
        )
    return found


def table(base: Result, other: Result) -> Table:
    """Ratios of the second to the first. Their rounds were not in turns, so that they are not paired."""
    rows = []
    for first, second in pairs(base, other):
        name = (second["configuration"], tables.at_of(second)) if other["axis"] else (second["configuration"],)
        ratios = [tables.ratio_of(BY_KEY[key], first, second, paired=False) for key in COMPARED]
        rows.append((*name, *(tables.shown(ratio, BY_KEY[key]) for ratio, key in zip(ratios, COMPARED, strict=True))))
    columns = ("configuration", other["axis"]) if other["axis"] else ("configuration",)
    header = (*(column or "" for column in columns), *(BY_KEY[key].label for key in COMPARED))
    note = f"Ratios of the second ({other['made']}) to the first ({base['made']}), and their 95 % intervals."
    return Table("Compared", header, tuple(rows), note)


def warnings(base: Result, other: Result) -> list[str]:
    """Returns the reasons why a comparison of two files is weak."""
    found = []
    for key in ("cpu", "python", "kernel"):
        ours, theirs = base["machine"].get(key), other["machine"].get(key)
        if ours != theirs:
            found.append(f"The machines differ: {key} was {ours}, and is {theirs}.")
    if base["load"] != other["load"]:
        found.append(f"The loads differ: {base['load']} and {other['load']}")
    missing = {cell["configuration"] for cell in base["cells"]} - {cell["configuration"] for cell in other["cells"]}
    if missing:
        found.append(f"Only the first result has {', '.join(sorted(missing))}.")
    return found


def broken(conditions: Sequence[Condition], base: Result | None, result: Result) -> list[str]:
    """Returns a sentence for each cell that breaks a condition.

    Relative ones are about `base`, and without one about the first configuration of the result itself.
    """
    found = []
    for condition in conditions:
        for first, cell in pairs(base, result) if base is not None else _beside_the_first(result):
            name = cell["configuration"] + (f" at {tables.at_of(cell)}" if cell["at"] is not None else "")
            if told := condition.broken_by(name, first, cell, paired=base is None):
                found.append(f"{told} ({condition.text})")
    return found


def _beside_the_first(result: Result) -> list[tuple[Cell | None, Cell]]:
    bases: dict[float | None, Cell] = {}
    found: list[tuple[Cell | None, Cell]] = []
    for cell in result["cells"]:
        base = bases.setdefault(cell["at"], cell)
        found.append((None if base is cell else base, cell))
    return found
