"""How every benchmark starts a server and goes through several: configurations as `tricorn bench` takes them."""

from __future__ import annotations

import argparse
import shlex
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from tricorn_bench.bench import proc
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.report.layout import markdown
from tricorn_bench.bench.servers import SERVERS, WSGI, Certificate, version

from benches.harness.process import BENCH_PYTHON, ROOT, SERVER_CORE, DidNotServe, Server, free_port

PATIENT = "--keep-alive 600 --worker-connections 20000"
"""No connection is closed for having been silent, and no server runs out of them."""

Figures = dict[str, Any]
"""Of a round, by the headers of their columns."""
installed = cache(version)


class Found(NamedTuple):
    """By the names of servers: their rounds, why others have none, and how they were started."""

    rounds: dict[str, list[Figures]]
    absent: dict[str, str]
    commands: dict[str, str]


@contextmanager
def serving(
    line: str,
    application: str,
    found: Found,
    interface: str = WSGI,
    cores: Sequence[int] = (SERVER_CORE,),
    python: str = str(BENCH_PYTHON),
    certificate: Certificate | None = None,
    *,
    http2: bool = False,
) -> Iterator[Server]:
    """A server for as long as the block runs; it stops when the block is left, and when this process ends."""
    configuration = Configuration.parse(line)
    if configuration.server != "tricorn" and installed(SERVERS[configuration.server], python) is None:
        raise DidNotServe("it is not installed")
    port = free_port()
    command = configuration.command(python, application, port, interface, certificate=certificate, http2=http2)
    kind = (", TLS" if certificate else "") + (", HTTP/2" if http2 else "")
    found.commands[f"{line}, {application}{kind}"] = shown(command, port, certificate)
    with Server(command, port, cores=cores, secure=certificate is not None) as server:
        yield server


def in_turns(
    lines: Mapping[str, str], arguments: argparse.Namespace, measure: Callable[[str, Found], Figures]
) -> Found:
    """Servers that `--servers` names take turns for `--rounds`; one that did not serve is left out, with the reason."""
    found = Found({}, {}, {})
    for number in range(getattr(arguments, "rounds", 1)):
        for name, line in lines.items():
            if name in found.absent or not name.startswith(tuple((arguments.servers or "").split(","))):
                continue
            try:
                figures = measure(line, found)
            except DidNotServe as reason:
                found.absent[name] = str(reason)
                found.rounds.pop(name, None)
                print(f"  {name}: {reason}", flush=True)
                continue
            found.rounds.setdefault(name, []).append(figures)
            told = ", ".join(f"{key} {shortened(value)}" for key, value in figures.items() if is_figure(value))
            print(f"  round {number + 1}: {name}: {told}", flush=True)
    return found


def is_figure(value: object) -> bool:
    """And not what is only kept, or drawn."""
    return not isinstance(value, (list, dict))


def table(title: str, found: Found) -> str:
    """A row for each server: the medians of its rounds."""
    several = [rounds[0].items() for rounds in found.rounds.values()]
    headers = list(dict.fromkeys(key for figures in several for key, value in figures if is_figure(value)))
    rows = [
        (name, *(shortened(_median([one.get(key) for one in rounds])) for key in headers))
        for name, rounds in found.rounds.items()
    ]
    left_out = [f"* {name}: {reason}" for name, reason in found.absent.items()]
    return "\n\n".join(
        [f"### {title}", markdown(("server", *headers), rows), *(["\n".join(left_out)] * bool(left_out))]
    )


def raw(found: Found) -> dict[str, Any]:
    return {"rounds": found.rounds, "absent": found.absent}


def _median(values: Sequence[Any]) -> Any:
    numbers = [value for value in values if isinstance(value, (int, float))]
    return statistics.median(numbers) if numbers else values[-1]


def shortened(value: Any) -> str:
    """Three digits, or all that are before the point."""
    match value:
        case None:
            return "–"
        case int() | float():
            return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
        case _:
            return str(value)


def shown(command: Sequence[str], port: int, certificate: Certificate | None = None) -> str:
    """A command as it can be repeated elsewhere: no paths of this machine, no random port."""
    if certificate is not None:
        for name, path in (("CERTIFICATE", certificate.file), ("KEY", certificate.key_file)):
            command = [word.replace(path, name) for word in command]
    words = (word.replace(f"{ROOT}/", "").replace(str(port), "PORT") for word in command)
    return shlex.join("python" if word.endswith("bin/python") else word for word in words).replace("'", '"')


def weigh(server: Server) -> float:
    """MiB (PSS) of all processes."""
    return sum(proc.memory(pid).pss for pid in server.pids()) / 2**20


def spent(server: Server) -> float:
    """CPU seconds of all processes so far."""
    return proc.cpu(server.pids()).total
