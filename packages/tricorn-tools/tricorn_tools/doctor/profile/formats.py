"""A profile in its formats: collapsed stacks, speedscope's JSON, JSON of our own, a page of HTML."""

from __future__ import annotations

from html import escape

from tricorn_tools.doctor import flame, formats
from tricorn_tools.doctor.formats import Json
from tricorn_tools.doctor.profile.analysis import Owner, Report, functions, heaviest
from tricorn_tools.doctor.profile.text import NAMES
from tricorn_tools.doctor.stacks import Frame

SCHEMA = "tricorn-doctor-profile/1"
TITLE = "Where the server spent its time"


def title(owner: Owner) -> str:
    return owner.name if owner.of == "request" else f"({owner.name})"


def collapsed(report: Report) -> str:
    """Returns collapsed stacks, the heaviest of each owner first."""
    return formats.collapsed(
        (title(owner), stack, cost.seconds) for owner in report.owners for stack, cost in heaviest(owner)
    )


def speedscope(report: Report) -> Json:
    """Returns a profile for each route, and for what was no request."""
    return formats.speedscope(
        TITLE, ((title(owner), [(stack, cost.seconds) for stack, cost in heaviest(owner)]) for owner in report.owners)
    )


def plain(report: Report) -> Json:
    workers = [
        {
            "slot": worker.slot,
            "pid": worker.pid,
            "class": worker.kind,
            "seconds": round(worker.seconds, 3),
            "by_kind": {kind: round(seconds, 3) for kind, seconds in worker.of.items()},
            "looks": worker.looks,
            "late": worker.late,
            "missed": worker.missed,
            "lost_seconds": round(worker.lost, 3),
            "processor_share": round(worker.cost, 4),
            "ended": worker.ended,
        }
        for worker in report.workers
    ]
    return {
        "schema": SCHEMA,
        "workers": workers,
        "missing": list(report.missing),
        "owners": [_owner(owner) for owner in report.owners],
    }


def _owner(owner: Owner) -> Json:
    def told(frame: Frame) -> Json:
        return {"file": frame.file, "line": frame.line, "function": frame.function}

    return {
        "of": owner.of,
        "name": owner.name,
        "requests": owner.requests,
        "seconds": round(owner.seconds, 4),
        "functions": [
            {"file": each.file, "function": each.name, "own": round(each.own, 4), "whole": round(each.whole, 4)}
            for each in functions([owner])
        ],
        "stacks": [
            {
                "seconds": round(cost.seconds, 4),
                "samples": cost.samples,
                "frames": [told(frame) for frame in reversed(stack)],
            }
            for stack, cost in heaviest(owner)
        ],
    }


def page(report: Report) -> str:
    """Returns one page of HTML with a flame graph for each owner."""
    looks = sum(worker.looks for worker in report.workers)
    late = sum(worker.late for worker in report.workers)
    missed = sum(worker.missed for worker in report.workers)
    workers = "1 worker" if len(report.workers) == 1 else f"{len(report.workers)} workers"
    head = (
        f"<h1>{TITLE}</h1><p>{workers}, {looks} samples, {late} late, {missed} missed. "
        "The width of a box is its time, summed over all workers.</p>"
    )
    owners = "".join(_section(owner) for owner in report.owners) or "<p>No requests, and no threads on CPU.</p>"
    return flame.document("Profile", head + owners)


def _section(owner: Owner) -> str:
    if owner.of == "request":
        name, summary = owner.name, f"{owner.seconds:.2f} s in {owner.requests} sampled requests"
    else:
        name, summary = NAMES[owner.of], f"{owner.seconds:.2f} s"
    stacks = ((stack, cost.seconds) for stack, cost in heaviest(owner))
    return f"<section><h2>{escape(name)}</h2><p>{escape(summary)}</p>{flame.graph(stacks)}</section>"
