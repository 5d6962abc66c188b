"""What does an idle WebSocket weigh?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tricorn.bench import proc

from benches.end_to_end.servers import Kind
from benches.green.sleepers import weigh
from benches.harness import report
from benches.harness.process import DidNotServe, Server, free_port
from benches.loops import generator
from benches.loops.cases import APPS

APPLICATION = f"{APPS}:echo"


class Round(NamedTuple):
    """Bytes of the server with all its processes."""

    empty: int
    opened: int
    #: After a message on each of them was echoed.
    used: int
    #: What each cost to open, and its message.
    open_cpu_us: float
    echo_cpu_us: float
    deflate: bool


def one_round(kind: Kind, count: int, options: Sequence[str], commands: dict[str, str]) -> Round:
    port = free_port()
    command = kind.command(APPLICATION, port, None)
    commands[f"{kind.name}, idle WebSockets"] = report.shown(command, port)
    with Server(command, port) as server:
        # Whatever is only made for the first of them is no part of the difference.
        with generator.held(port, 1, options) as one:
            one.echo()
        pids = server.pids()
        empty, begun = weigh(server), proc.cpu(pids)
        with generator.held(port, count, options) as many:
            opened, after_open = weigh(server), proc.cpu(pids)
            if many.opened["open"] != count:
                raise DidNotServe(f"{many.opened['open']} of {count} were open")
            echoed = many.echo()
            after_echo = proc.cpu(pids)
            settle(pids)
            used = weigh(server)
    return Round(
        empty=empty,
        opened=opened,
        used=used,
        open_cpu_us=(after_open - begun).total / count * 1e6,
        echo_cpu_us=(after_echo - after_open).total / count * 1e6,
        deflate=echoed["deflate"] is not None,
    )


def settle(pids: Sequence[int], patience: float = 5.0) -> None:
    """Until the server rests: what it tidies up after messages is done."""
    deadline = time.monotonic() + patience
    spent = proc.cpu(pids).total
    while time.monotonic() < deadline:
        time.sleep(0.3)
        now = proc.cpu(pids).total
        if now - spent < 0.003:
            return
        spent = now


def render(rounds: Mapping[str, Sequence[Round]], absent: Mapping[str, str], count: int, offer: str) -> str:
    rows = []
    for name, several in rounds.items():
        median = {field: statistics.median(getattr(one, field) for one in several) for field in Round._fields}
        rows.append(
            [
                name,
                "yes" if median["deflate"] else "no",
                *(f"{median[field] / 2**20:.1f}" for field in ("empty", "opened", "used")),
                f"{(median['opened'] - median['empty']) / count / 1024:.1f}",
                f"{(median['used'] - median['empty']) / count / 1024:.1f}",
                f"{median['open_cpu_us']:.0f}",
                f"{median['echo_cpu_us']:.0f}",
            ]
        )
    header = [
        "server",
        "deflate",
        "PSS MiB empty",
        "all open",
        "after a message each",
        "KiB per WebSocket",
        "after one",
    ]
    header += ["CPU µs to open", "for the message"]
    lines = [f"* {name}: {reason}" for name, reason in absent.items()]
    title = f"### {count:,} idle WebSockets on one worker, {offer}"
    return "\n\n".join([title, report.table(header, rows), *(["\n".join(lines)] if lines else [])])


def raw(rounds: Mapping[str, Sequence[Round]], absent: Mapping[str, str]) -> dict[str, Any]:
    return {"rounds": {name: [one._asdict() for one in several] for name, several in rounds.items()}, "absent": absent}
