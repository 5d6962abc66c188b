"""What does a request cost under an event loop, and what do those that wait?  python -m benches.loops --help

hello, post10k: raw ASGI under wrk. tornado, aiohttp: their own servers beside the worker classes for them. ws:
messages that are echoed. idle-ws: WebSockets that say nothing. sleepers: ten thousand requests in `asyncio.sleep(1)`.
One worker on one core, the load generator on another; servers take turns, round after round, and a figure is the median
of its rounds.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from benches.end_to_end import rounds as wrk_rounds
from benches.end_to_end.cases import Case
from benches.end_to_end.servers import Kind
from benches.end_to_end.turns import in_turns, wanted
from benches.green import sleepers
from benches.harness import environment, report, wrk
from benches.harness.process import ROOT, become_generator, before_other_work
from benches.loops import cases, generator, idle, servers, websockets

Commands = dict[str, str]
Part = Callable[[argparse.Namespace, Commands], tuple[str, Any]]


def main() -> int:
    arguments = parse()
    wrk.need()
    generator.need()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    commands: Commands = {}
    pages: list[str] = []
    data: dict[str, Any] = {}
    cores = os.sched_getaffinity(0)
    if arguments.realtime:
        before_other_work()
    for name in arguments.parts.split(","):
        os.sched_setaffinity(0, cores)
        page, data[name] = PARTS[name](arguments, commands)
        print(f"\n{page}\n", flush=True)
        pages.append(page)
        if not arguments.dry:
            described = environment.describe()
            folder = report.write(arguments.name, "Event-loop workers", described, commands, "\n\n".join(pages), data)
    if not arguments.dry:
        print(f"written to {folder.relative_to(ROOT)}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.loops", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="comma separated; all if not given")
    parser.add_argument("--servers", help="beginnings of names, comma separated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of measured load in a round")
    parser.add_argument("--connections", type=int, default=64, help="of the load generators")
    parser.add_argument("--idle", type=int, default=10_000, help="WebSockets of the part idle-ws")
    parser.add_argument("--sleepers", type=int, default=10_000)
    parser.add_argument("--realtime", action="store_true", help="before all other work of a machine that is not quiet")
    parser.add_argument("--name", default="loops", help="of the folder under benches/runs")
    parser.add_argument("--dry", action="store_true", help="write nothing to benches/runs")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts.split(",")) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return arguments


def under_wrk(case: Case, kinds: Sequence[Kind]) -> Part:
    def part(arguments: argparse.Namespace, commands: Commands) -> tuple[str, Any]:
        seen, absent = wrk_rounds.measure(case, wanted(kinds, arguments), arguments, commands)
        return wrk_rounds.render(case, seen, absent), wrk_rounds.raw(seen, absent)

    return part


def echo(arguments: argparse.Namespace, commands: Commands) -> tuple[str, Any]:
    pages, data = [], {}
    for variant in websockets.VARIANTS:

        def one_round(kind: Kind, variant: websockets.Variant = variant) -> websockets.Round:
            return websockets.one_round(kind, variant, arguments.connections, arguments.seconds, commands)

        seen, absent = in_turns(servers.WEBSOCKET, arguments, one_round)
        pages.append(websockets.render(variant, seen, absent))
        data[variant.name] = websockets.raw(seen, absent)
    return "\n\n".join(pages), data


def idle_websockets(arguments: argparse.Namespace, commands: Commands) -> tuple[str, Any]:
    pages, data = [], {}
    for offer, options in (("plain", ()), ("permessage-deflate offered, as browsers do", ("--deflate",))):

        def one_round(kind: Kind, options: Sequence[str] = options) -> idle.Round:
            return idle.one_round(kind, arguments.idle, options, commands)

        seen, absent = in_turns(servers.WEBSOCKET, arguments, one_round)
        pages.append(idle.render(seen, absent, arguments.idle, offer))
        data[offer] = idle.raw(seen, absent)
    return "\n\n".join(pages), data


def asleep(arguments: argparse.Namespace, commands: Commands) -> tuple[str, Any]:
    become_generator(realtime=False)
    application, count = f"{cases.APPS}:sleep", arguments.sleepers

    def one_round(kind: Kind) -> sleepers.Round:
        return sleepers.one_round(kind, count, commands, application)

    seen, absent = in_turns(servers.SLEEPING, arguments, one_round)
    return sleepers.render(seen, absent, count), sleepers.raw(seen, absent)


PARTS: dict[str, Part] = {
    "hello": under_wrk(cases.HELLO, servers.ASGI),
    "post10k": under_wrk(cases.POST, servers.ASGI),
    "ws": echo,
    "idle-ws": idle_websockets,
    "sleepers": asleep,
    "tornado": under_wrk(cases.TORNADO, servers.TORNADO),
    "aiohttp": under_wrk(cases.AIOHTTP, servers.AIOHTTP),
}


if __name__ == "__main__":
    sys.exit(main())
