"""What does a request cost under an event loop, and what do those that wait?  python -m benches.loops --help

hello, post10k: raw ASGI. tornado, aiohttp: their own servers beside the worker classes for them. ws:
messages that are echoed. idle-ws: WebSockets that say nothing. sleepers: ten thousand requests in `asyncio.sleep(1)`.
One worker on one core, the load generator on another; servers take turns, round after round, and a figure is the median
of its rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from benches.end_to_end import rounds as load_rounds
from benches.end_to_end.cases import Case
from benches.end_to_end.servers import Kind
from benches.end_to_end.turns import in_turns, wanted
from benches.green import sleepers
from benches.harness import parts
from benches.harness.parts import Commands, Part
from benches.harness.process import become_generator
from benches.loops import cases, generator, idle, servers, websockets


def main() -> int:
    parser = parts.options("benches.loops", __doc__, PARTS, name="loops")
    parser.add_argument("--idle", type=int, default=10_000, help="WebSockets of the part idle-ws")
    arguments = parts.parse(parser, PARTS)
    return parts.run("Event-loop workers", arguments, PARTS)


def under_load(case: Case, kinds: Sequence[Kind]) -> Part:
    def part(arguments: argparse.Namespace, commands: Commands) -> tuple[str, Any]:
        seen, absent = load_rounds.measure(case, wanted(kinds, arguments), arguments, commands)
        return load_rounds.render(case, seen, absent), load_rounds.raw(seen, absent)

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
    generator.need()
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
    "hello": under_load(cases.HELLO, servers.ASGI_SERVERS),
    "post10k": under_load(cases.POST, servers.ASGI_SERVERS),
    "ws": echo,
    "idle-ws": idle_websockets,
    "sleepers": asleep,
    "tornado": under_load(cases.TORNADO, servers.TORNADO),
    "aiohttp": under_load(cases.AIOHTTP, servers.AIOHTTP),
}


if __name__ == "__main__":
    sys.exit(main())
