"""The report on slow requests as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tricorn_tools.doctor.slow.analysis import Line, Report, Route
from tricorn_tools.doctor.stacks import name, place

MOST_LINES = 10
"""Most lines shown for a route."""

NOTHING = """\
No request was slow yet: none took longer than profile_after (50 ms, if nothing else is set), or none of them has ended.
"""


def text(report: Report, source: Callable[[str, int], str]) -> str:
    """`source`: a line of a file, empty if it cannot be read."""
    if not report.routes:
        return NOTHING
    blocks = ["\n".join(_route(route, source)) for route in report.routes]
    if report.late:
        blocks.append(
            f"The sampler came late, or not at all, for {report.late} samples: what is missing is in no line."
        )
    return "\n\n".join(blocks) + "\n"


def _route(route: Route, source: Callable[[str, int], str]) -> Iterator[str]:
    yield f"{route.name}: {route.slow} of about {route.requests} requests took longer than {route.boundary:g} s"
    if not route.lines:
        yield "  Nothing was seen that they did and the usual ones did not."
    for line in route.lines[:MOST_LINES]:
        yield from _line(line, source)
    if (left := len(route.lines) - MOST_LINES) > 0:
        yield f"  {left} lines more: --json has them"
    if route.lost > 0:
        yield f"  No room was left for {route.lost:.1f} s of samples."


def _line(line: Line, source: Callable[[str, int], str]) -> Iterator[str]:
    *outer, inner = line.stack
    code = source(inner.file, inner.line)
    yield f"  +{line.more * 1000:.0f} ms  {inner.file}:{inner.line} in {inner.function}{': ' + code if code else ''}"
    if line.native is not None:
        yield f"             in {name(line.native)}"
    for frame in reversed(outer):
        yield f"             from {place(frame)}"
