"""What was measured as a page: a table, the verdicts, and the course of it as a picture."""

from __future__ import annotations

from typing import Any

from benches.harness import report, svg
from benches.one_queue.servers import SERVERS_OF_A_GROUP

HEADER = [
    "",
    *("served/s", "of capacity", "admitted p50 ms", "p99", "max", "503 p50 ms", "p99", "max", "served", "refused"),
    *("gave up", "other", "recovery s", "CPU ms/req"),
]
COLOURS = {"tricorn-sync": 1, "tricorn-adaptive": 2, "tricorn-unlimited": 3, "gunicorn-gthread": 4, "granian": 5}


def short(result: dict[str, Any]) -> str:
    if "absent" in result:
        return str(result["absent"])
    failed = [name for name, kept in result["verdicts"].items() if not kept]
    return f"{result['goodput_per_second']:.0f}/s served; {'not: ' + '; '.join(failed) if failed else 'all kept'}"


def render(data: dict[str, Any]) -> str:
    chosen = data["settings"]
    present = {name: result for name, result in data["servers"].items() if "absent" not in result}
    absent = [f"* {name}: {result['absent']}" for name, result in data["servers"].items() if "absent" in result]
    connections = "a connection for each request" if chosen["fresh"] else "persistent connections"
    kind = "exponential with a mean of" if chosen["exponential"] else "all"
    intro = (
        f"Capacity {chosen['capacity']:g} requests/s (service times {kind} {chosen['service'] * 1e3:g} ms, four at "
        f"once); {chosen['quiet']:g} times that for {chosen['before']:g} s, {chosen['overload']:g} times for "
        f"{chosen['seconds']:g} s, {chosen['quiet']:g} times for {chosen['after']:g} s. {chosen['connections']:,} "
        f"clients with {connections}, who give up after {chosen['patience']:g} s. tricorn-sync: queue_limit "
        f"{chosen['queue_limit']}, queue_timeout {chosen['queue_timeout']:g} s; the others have no limit. All figures "
        "but the recovery are of the overload. *recovery*: until every request is served again, none slower than the "
        f"slowest before. A full queue of {chosen['queue_limit']} in each worker takes {drain_seconds(chosen):.1f} s."
    )
    parts = [intro, report.table(HEADER, [row(name, result) for name, result in present.items()])]
    parts += ["\n".join(absent)] * bool(absent)
    if present:
        names = list(next(iter(present.values()))["verdicts"])
        rows = [
            [question, *("yes" if result["verdicts"][question] else "no" for result in present.values())]
            for question in names
        ]
        parts.append(report.table(["", *present], rows))
        late = max(result["sent_late_p99_ms"] for result in present.values())
        parts.append(f"Requests went out up to {late:.2f} ms late (p99; it is part of the latencies).")
    held_up = [
        f"{name} {one['without_free_connection']}" for name, one in present.items() if one["without_free_connection"]
    ]
    if held_up:
        parts.append(f"Found all clients busy: {', '.join(held_up)}.")
    return "\n\n".join(parts)


def drain_seconds(chosen: dict[str, Any]) -> float:
    spare: float = chosen["capacity"] * (1 - chosen["quiet"])
    return float(SERVERS_OF_A_GROUP * chosen["queue_limit"] / spare)


def row(name: str, result: dict[str, Any]) -> list[str]:
    outcomes = result["outcomes"]
    known = {"200", "503", "-1"}
    recovered = result["recovery_seconds"]
    return [
        name,
        f"{result['goodput_per_second']:.0f}",
        f"{result['goodput_of_capacity']:.1%}",
        *(f"{result['admitted_ms'][key]:.1f}" if result["admitted_ms"] else "-" for key in ("p50", "p99", "max")),
        *(f"{result['refused_ms'][key]:.2f}" if result["refused_ms"] else "-" for key in ("p50", "p99", "max")),
        *(f"{outcomes.get(status, 0):,}" for status in ("200", "503", "-1")),
        f"{sum(count for status, count in outcomes.items() if status not in known):,}",
        "none" if recovered is None else f"{recovered:.2f}",
        f"{result['cpu_ms_per_request']:.3f}",
    ]


def draw(data: dict[str, Any]) -> str:
    chosen = data["settings"]
    end = chosen["before"] + chosen["seconds"]
    over = end + chosen["after"]
    capacity = chosen["capacity"]
    marks = sorted({0.0, chosen["before"], chosen["before"] + chosen["seconds"] / 2, end, over})
    time = svg.Axis("time", [(mark, f"{mark:g} s") for mark in marks])
    panels = [
        ("Served per second", "good_per_second", svg.Axis("answers 200", whole(capacity * 1.5))),
        (
            "Clients that gave up, per second",
            "gave_up_per_second",
            svg.Axis("clients", whole(chosen["overload"] * capacity)),
        ),
        ("Latency of what is served (p99)", "admitted_p99_ms", MILLISECONDS),
        ("Time to the refusal of the rest (p99)", "refused_p99_ms", MILLISECONDS),
    ]
    drawn = [
        svg.Panel(title, time, axis, curves(data["servers"], key), band=(chosen["before"], end))
        for title, key, axis in panels
    ]
    return svg.page(f"{chosen['overload']:g} times the capacity for {chosen['seconds']:g} s", drawn)


MILLISECONDS = svg.Axis(
    "latency",
    [(0.1, "0.1 ms"), (1, "1 ms"), (10, "10 ms"), (100, "100 ms"), (1000, "1 s"), (10_000, "10 s")],
    logarithmic=True,
)


def whole(most: float) -> list[tuple[float, str]]:
    return [(most * step / 6, f"{most * step / 6:g}") for step in range(7)]


def curves(servers: dict[str, Any], key: str) -> list[svg.Line]:
    return [
        svg.Line(
            name,
            COLOURS.get(name, 0),
            [(bucket["at"], bucket[key]) for bucket in result["curve"] if bucket[key] is not None],
        )
        for name, result in servers.items()
        if "absent" not in result
    ]
