"""Formats the report on slow requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tricorn_tools.doctor.slow.analysis import Line, Report, Route
from tricorn_tools.doctor.stacks import name, place

MOST_LINES = 10
"""Most lines shown for a route."""

NOTHING = """\
No slow requests yet: no request that took longer than profile_after (50 ms by default) has ended.
"""


def text(report: Report, source: Callable[[str, int], str]) -> str:
    """`source`: a line of a file, empty if it cannot be read."""
    if not report.routes:
        return NOTHING
    blocks = ["\n".join(_route(route, source)) for route in report.routes]
    if report.late:
        blocks.append(f"{report.late} samples were late or missed and are not included.")
    return "\n\n".join(blocks) + "\n"


def _route(route: Route, source: Callable[[str, int], str]) -> Iterator[str]:
    yield f"{route.name}: {route.slow} of about {route.requests} requests took longer than {route.boundary:g} s"
    if not route.lines:
        yield "  No difference to the usual requests found."
    for line in route.lines[:MOST_LINES]:
        yield from _line(line, source)
    if (left := len(route.lines) - MOST_LINES) > 0:
        yield f"  (and {left} more lines: --json shows them)"
    if route.lost > 0:
        yield f"  Not included: {route.lost:.1f} s of samples, because memory for samples was full."


def _line(line: Line, source: Callable[[str, int], str]) -> Iterator[str]:
    *outer, inner = line.stack
    code = source(inner.file, inner.line)
    yield f"  +{line.more * 1000:.0f} ms  {inner.file}:{inner.line} in {inner.function}{': ' + code if code else ''}"
    if line.native is not None:
        yield f"             in {name(line.native)}"
    for frame in reversed(outer):
        yield f"             from {place(frame)}"
