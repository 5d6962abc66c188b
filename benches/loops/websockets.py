"""Messages that are echoed: short and long ones, with and without permessage-deflate."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tricorn.bench import proc

from benches.end_to_end.rounds import worker_memory
from benches.end_to_end.servers import Kind, is_peer
from benches.harness import load, report
from benches.harness.process import Server, free_port
from benches.loops.cases import APPS

APPLICATION = f"{APPS}:echo"


class Variant(NamedTuple):
    name: str
    question: str
    size: int
    deflate: bool = False


VARIANTS = [
    Variant("ws-125", "125 B of text", 125),
    Variant("ws-125-deflate", "125 B of text, permessage-deflate", 125, deflate=True),
    Variant("ws-64k", "64 KiB of text", 65536),
    Variant("ws-64k-deflate", "64 KiB of text, permessage-deflate", 65536, deflate=True),
]


class Round(NamedTuple):
    per_second: float
    #: Of the server, per message.
    cpu_us: float
    p50_ms: float
    p99_ms: float
    pss: int
    #: How much of its core the load generator was busy.
    generator: float
    messages: int
    errors: int


def one_round(kind: Kind, variant: Variant, connections: int, seconds: float, commands: dict[str, str]) -> Round:
    port = free_port()
    command = kind.command(APPLICATION, port, None)
    commands[f"{kind.name}, {variant.name}"] = report.shown(command, port)
    with Server(command, port) as server:
        load.echo(port, connections, min(1.0, seconds), variant.size, deflate=variant.deflate)
        pids = server.pids()
        before = proc.cpu(pids)
        seen = load.echo(port, connections, seconds, variant.size, deflate=variant.deflate)
        spent = (proc.cpu(pids) - before).total
        memory = worker_memory(pids)
    return Round(
        per_second=seen.per_second,
        cpu_us=spent / max(1, seen.requests) * 1e6,
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        pss=memory.pss,
        generator=seen.cpu / seen.seconds,
        messages=seen.requests,
        errors=seen.errors,
    )


def render(variant: Variant, rounds: Mapping[str, Sequence[Round]], absent: Mapping[str, str]) -> str:
    medians = {
        name: {field: statistics.median(getattr(one, field) for one in several) for field in Round._fields}
        for name, several in rounds.items()
    }
    peers = [median for name, median in medians.items() if is_peer(name)]
    best = max((peer["per_second"] for peer in peers), default=0.0)
    rows = []
    for name, median in sorted(medians.items(), key=lambda item: -item[1]["per_second"]):
        rows.append(
            [
                name + (f" ({median['errors']:.0f} errors)" if median["errors"] else ""),
                f"{median['per_second']:,.0f}",
                f"{median['per_second'] / best:.2f}" if best else "",
                f"{median['cpu_us']:.1f}",
                f"{median['p50_ms']:.2f}",
                f"{median['p99_ms']:.2f}",
                f"{median['pss'] / 2**20:.1f}",
                f"{median['generator']:.0%}",
            ]
        )
    header = ["server", "messages/s", "÷ best peer", "CPU µs/message", "p50 ms", "p99 ms", "PSS MiB", "generator busy"]
    lines = [f"* {name}: {reason}" for name, reason in absent.items()]
    title = f"### {variant.name}: {variant.question}"
    return "\n\n".join([title, report.table(header, rows), *(["\n".join(lines)] if lines else [])])


def raw(rounds: Mapping[str, Sequence[Round]], absent: Mapping[str, str]) -> dict[str, Any]:
    return {"rounds": {name: [one._asdict() for one in several] for name, several in rounds.items()}, "absent": absent}
