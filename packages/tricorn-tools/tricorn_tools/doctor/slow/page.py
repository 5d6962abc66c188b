"""The report on slow requests as one page of HTML: a flame graph for each route."""

from __future__ import annotations

from html import escape

from tricorn_tools.doctor import flame
from tricorn_tools.doctor.slow.analysis import Report, Route


def page(report: Report) -> str:
    routes = "".join(_route(route) for route in report.routes) or "<p>No request was slow yet.</p>"
    return flame.document("Slow requests", f"<h1>What slow requests did that usual ones did not</h1>{routes}")


def _route(route: Route) -> str:
    summary = f"{route.slow} of about {route.requests} requests took longer than {route.boundary:g} s"
    return (
        f"<section><h2>{escape(route.name)}</h2><p>{escape(summary)}; the width is the time that each of them "
        f"was at it for longer than a usual one.</p>"
        f"{flame.graph((line.whole, line.more) for line in route.lines)}</section>"
    )
