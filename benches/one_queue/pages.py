"""What was measured as a page: tables with the verdict in each row, and the tails as a picture."""

from __future__ import annotations

import argparse
from typing import Any

from benches.harness import report, svg

CRITERIA = ("mean_ms", "p99_ms", "p99.9_ms")
#: How far a measured figure may lie from the simulated one: a share of it, and milliseconds.
SHARE, MILLISECONDS = 0.10, 1.0

HEADER = [
    "",
    *("mean wait ms", "p50", "p99", "p99.9", "max", "requests", "CPU ms/req", "overhead ms", "busiest worker"),
    "as one queue?",
]

COLOURS = {
    "M/M/4 (simulated)": 0,
    "tricorn-sync": 1,
    "tricorn-gthread": 6,
    "tricorn-no-handover": 3,
    "gunicorn-gthread": 4,
    "granian": 5,
    "uvicorn": 2,
}


#: Milliseconds (p99) that requests may go out late; beyond, somebody else was using the load generator's core.
LATE = 1.0


def verdict(result: dict[str, Any], theory: dict[str, Any]) -> str:
    """yes, or which figures are too far off, or that the machine was not quiet enough to tell."""
    if result["sent_late_p99_ms"] > LATE:
        return "disturbed: measure again"
    far = [
        f"{name.removesuffix('_ms')} {result[name] - theory[name]:+.1f} ms"
        for name in CRITERIA
        if abs(result[name] - theory[name]) > SHARE * theory[name] + MILLISECONDS
    ]
    if result["failed"]:
        far.append(f"{result['failed']} failed")
    return "no: " + ", ".join(far) if far else "yes"


def short(result: dict[str, Any], theory: dict[str, Any]) -> str:
    if "absent" in result:
        return str(result["absent"])
    figures = ", ".join(f"{name.removesuffix('_ms')} {result[name]:.2f} ({theory[name]:.2f})" for name in CRITERIA)
    return f"{figures} ms; {verdict(result, theory)}"


def render(data: dict[str, Any], arguments: argparse.Namespace) -> str:
    parts = [
        f"Service times exponential with a mean of {arguments.service * 1e3:g} ms, {arguments.connections} "
        f"connections, seed {arguments.seed}. *as one queue?*: mean, p99 and p99.9 of the wait lie within {SHARE:.0%} "
        f"+ {MILLISECONDS:g} ms of the simulation of M/M/4 for the same trace. *overhead*: what the idle server adds "
        "to the service time, median; it is part of the waits. *busiest worker*: its share of the requests."
    ]
    for percent, point in data.items():
        simulated = point["M/M/4"]
        rows = [theory_row(name, point[name]) for name in ("M/M/4", "4 x M/M/1")]
        rows += [
            server_row(name, result, simulated) for name, result in point["servers"].items() if "absent" not in result
        ]
        absent = [f"* {name}: {result['absent']}" for name, result in point["servers"].items() if "absent" in result]
        parts.append(f"### {percent} % load (in this trace {point['offered']:.1%})")
        parts.append(f"Erlang's formula: a mean wait of {point['formula_mean_ms']:.2f} ms.")
        parts.append(report.table(HEADER, rows))
        parts += ["\n".join(absent)] * bool(absent) + notes(point["servers"])
    return "\n\n".join(parts)


def theory_row(name: str, result: dict[str, Any]) -> list[str]:
    return [f"{name}, simulated", *figures(result), "", "", "", ""]


def server_row(name: str, result: dict[str, Any], theory: dict[str, Any]) -> list[str]:
    return [
        name,
        *figures(result),
        f"{result['cpu_ms_per_request']:.3f}",
        f"{result['overhead_ms']:.2f}",
        f"{result['largest_share_of_a_worker']:.0%}",
        verdict(result, theory),
    ]


def figures(result: dict[str, Any]) -> list[str]:
    names = ("mean_ms", "p50_ms", "p99_ms", "p99.9_ms", "max_ms")
    return [*(f"{result[name]:.2f}" for name in names), f"{result['requests']:,}"]


def notes(servers: dict[str, Any]) -> list[str]:
    """What a reader has to know of the load generator."""
    present = {name: result for name, result in servers.items() if "absent" not in result}
    held_up = [
        f"{name} {result['without_free_connection']}"
        for name, result in present.items()
        if result["without_free_connection"]
    ]
    late = max((result["sent_late_p99_ms"] for result in present.values()), default=0.0)
    reopened = [
        f"{name} {result['connections_reopened']}" for name, result in present.items() if result["connections_reopened"]
    ]
    lines = [f"Requests went out up to {late:.2f} ms late (p99; it is part of the waits)."]
    if held_up:
        lines.append(
            f"Found no free connection and waited for one, counted from when they were due: {', '.join(held_up)}."
        )
    if reopened:
        lines.append(f"Connections that the server closed and the clients opened again: {', '.join(reopened)}.")
    return [" ".join(lines)]


def draw(data: dict[str, Any]) -> str:
    panels = []
    for percent, point in data.items():
        lines = [curve("M/M/4 (simulated)", point["M/M/4"], dashed=True)]
        lines += [curve(name, result) for name, result in point["servers"].items() if "absent" not in result]
        # The theory lies on top, so that it stays visible where it is met.
        panels.append(svg.Panel(f"{percent} % load", WAIT, SHARE_BEYOND, [*lines[1:], lines[0]]))
    return svg.page("How long requests wait: the share that waits longer than …", panels)


WAIT = svg.Axis(
    "wait",
    [(0.1, "0.1 ms"), (1, "1 ms"), (10, "10 ms"), (100, "100 ms"), (1000, "1 s"), (10_000, "10 s")],
    logarithmic=True,
)
SHARE_BEYOND = svg.Axis(
    "share of the requests",
    [(0.0001, "0.01 %"), (0.001, "0.1 %"), (0.01, "1 %"), (0.1, "10 %"), (1, "100 %")],
    logarithmic=True,
)


def curve(name: str, result: dict[str, Any], *, dashed: bool = False) -> svg.Line:
    return svg.Line(name, COLOURS.get(name, 0), [(wait, share) for wait, share in result["tail"]], dashed)
