"""A profile as one page of HTML: a flame graph for each route, and for what was no request."""

from __future__ import annotations

from html import escape

from tricorn_tools.doctor import flame
from tricorn_tools.doctor.profile.analysis import Owner, Report, heaviest
from tricorn_tools.doctor.profile.text import NAMES


def page(report: Report) -> str:
    looks = sum(worker.looks for worker in report.workers)
    late = sum(worker.late for worker in report.workers)
    missed = sum(worker.missed for worker in report.workers)
    head = (
        f"<h1>Where the time of the server went</h1><p>{len(report.workers)} workers, {looks} looks, {late} late, "
        f"{missed} samples missed. The width is time, of all workers together.</p>"
    )
    owners = "".join(_owner(owner) for owner in report.owners) or "<p>No request ran, and nothing computed.</p>"
    return flame.document("Profile", head + owners)


def _owner(owner: Owner) -> str:
    if owner.of == "request":
        name, summary = owner.name, f"{owner.seconds:.2f} s in {owner.requests} requests that were seen"
    else:
        name, summary = NAMES[owner.of], f"{owner.seconds:.2f} s"
    stacks = ((stack, cost.seconds) for stack, cost in heaviest(owner))
    return f"<section><h2>{escape(name)}</h2><p>{escape(summary)}</p>{flame.graph(stacks)}</section>"
