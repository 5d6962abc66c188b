"""A profile for other programs: collapsed stacks, speedscope's JSON, and JSON of our own."""

from __future__ import annotations

from tricorn import __version__
from tricorn_tools.doctor.profile.analysis import Owner, Report, functions, heaviest, weighted
from tricorn_tools.doctor.slow.formats import speedscope_frame
from tricorn_tools.doctor.stacks import Frame, name

Json = dict[str, object]

SCHEMA = "tricorn-doctor-profile/1"


def title(owner: Owner) -> str:
    return owner.name if owner.of == "request" else f"({owner.name})"


def collapsed(report: Report) -> str:
    """Returns collapsed stacks, as for flamegraph.pl: a line for each, with its microseconds."""
    lines = []
    for owner, stack, cost in weighted(report):
        frames = ";".join(name(frame).replace(";", ":") for frame in stack)
        lines.append(f"{title(owner).replace(';', ':')};{frames} {round(cost.seconds * 1e6)}\n")
    return "".join(lines)


def speedscope(report: Report) -> Json:
    """https://www.speedscope.app/file-format-schema.json: a profile for each route, and for what was no request."""
    numbers: dict[Frame, int] = {}
    profiles: list[Json] = []
    for owner in report.owners:
        found = heaviest(owner)
        samples = [[numbers.setdefault(frame, len(numbers)) for frame in stack] for stack, _ in found]
        weights = [cost.seconds for _, cost in found]
        if samples:
            sampled = {"type": "sampled", "name": title(owner), "unit": "seconds", "startValue": 0}
            profiles.append({**sampled, "endValue": sum(weights), "samples": samples, "weights": weights})
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"tricorn {__version__}",
        "name": "Where the time of the server went",
        "activeProfileIndex": 0,
        "shared": {"frames": [speedscope_frame(each) for each in numbers]},
        "profiles": profiles,
    }


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
