"""Tables as text: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tricorn.record import Record


class Table(Record):
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table that is readable as it stands: first column to the left, figures to the right."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]

    def line(row: Sequence[str]) -> str:
        aligned = [
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "| " + " | ".join(aligned) + " |"

    rule = "|" + "|".join("-" * (width + 1) + ("-" if n == 0 else ":") for n, width in enumerate(widths)) + "|"
    return "\n".join([line(cells[0]), rule, *[line(row) for row in cells[1:]]])


def plain(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table for a terminal."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "─" * (sum(widths) + 2 * (len(widths) - 1)), *lines[1:]])
