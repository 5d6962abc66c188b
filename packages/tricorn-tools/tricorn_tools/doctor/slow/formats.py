"""The report on slow requests in its formats: collapsed stacks, speedscope's JSON, JSON of our own, a page of HTML."""

from __future__ import annotations

from html import escape

from tricorn_tools.doctor import flame, formats
from tricorn_tools.doctor.formats import Json
from tricorn_tools.doctor.slow.analysis import Report, Route
from tricorn_tools.doctor.stacks import Frame, Stack, name

TITLE = "What made slow requests slow"


def collapsed(report: Report) -> str:
    """Returns collapsed stacks, with the microseconds beyond the usual."""
    return formats.collapsed((route.name, *each) for route in report.routes for each in _stacks(route))


def speedscope(report: Report) -> Json:
    """Returns a profile for each route."""
    return formats.speedscope(TITLE, ((route.name, _stacks(route)) for route in report.routes))


def _stacks(route: Route) -> list[tuple[Stack, float]]:
    """Returns stacks with their seconds beyond the usual, of all slow requests."""
    return [(line.whole, line.more * route.slow) for line in route.lines]


def plain(report: Report) -> Json:
    def told(stack: Stack) -> list[Json]:
        return [{"file": each.file, "line": each.line, "function": each.function} for each in reversed(stack)]

    def native(frame: Frame | None) -> str | None:
        return None if frame is None else name(frame)

    routes = [
        {
            "route": route.name,
            "requests": route.requests,
            "slow": route.slow,
            "boundary": route.boundary,
            "seen_seconds": round(route.seen, 3),
            "lost_seconds": round(route.lost, 3),
            "lines": [
                {"slow": round(line.slow, 4), "usual": round(line.usual, 4), "native": native(line.native)}
                | {"frames": told(line.stack)}
                for line in route.lines
            ],
        }
        for route in report.routes
    ]
    return {"schema": "tricorn-doctor-slow/1", "late": report.late, "routes": routes}


def page(report: Report) -> str:
    """Returns one page of HTML with a flame graph for each route."""
    routes = "".join(_route(route) for route in report.routes) or "<p>No slow requests yet.</p>"
    return flame.document("Slow requests", f"<h1>{TITLE}</h1>{routes}")


def _route(route: Route) -> str:
    summary = f"{route.slow} of about {route.requests} requests took longer than {route.boundary:g} s"
    return (
        f"<section><h2>{escape(route.name)}</h2><p>{escape(summary)}. The width of a box is the extra time "
        f"that a slow request spent there, compared with a usual one.</p>"
        f"{flame.graph((line.whole, line.more) for line in route.lines)}</section>"
    )
