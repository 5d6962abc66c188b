"""The report on slow requests for other programs: collapsed stacks, speedscope's JSON, and JSON of our own."""

from __future__ import annotations

from tricorn import __version__
from tricorn_tools.doctor.slow.analysis import Report, weighted
from tricorn_tools.doctor.stacks import Frame, Stack, name

Json = dict[str, object]


def collapsed(report: Report) -> str:
    """Returns collapsed stacks, as for flamegraph.pl: a line for each, with the microseconds beyond the usual."""
    lines = []
    for route, stack, _, more in weighted(report):
        frames = ";".join(name(frame).replace(";", ":") for frame in stack)
        lines.append(f"{route.name.replace(';', ':')};{frames} {round(more * 1e6)}\n")
    return "".join(lines)


def speedscope(report: Report) -> Json:
    """https://www.speedscope.app/file-format-schema.json: a profile for each route."""
    numbers: dict[Frame, int] = {}
    profiles: list[Json] = []
    for route in report.routes:
        samples: list[list[int]] = []
        weights: list[float] = []
        for line in route.lines:
            samples.append([numbers.setdefault(frame, len(numbers)) for frame in line.whole])
            weights.append(line.more * route.slow)
        if samples:
            sampled = {"type": "sampled", "name": route.name, "unit": "seconds", "startValue": 0}
            profiles.append({**sampled, "endValue": sum(weights), "samples": samples, "weights": weights})
    frames = [speedscope_frame(each) for each in numbers]
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"tricorn {__version__}",
        "name": "What slow requests did that usual ones did not",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }


def speedscope_frame(frame: Frame) -> Json:
    if not frame.is_python:
        return {"name": name(frame)}
    return {"name": frame.function, "file": frame.file, "line": frame.line}


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
