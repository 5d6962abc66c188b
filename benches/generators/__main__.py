"""Do `tricorn load`, hey and wrk say the same of one server?  python -m benches.generators --help

One worker `sync` on one core, the generators on the other one, in turns. The server's own counter stands beside what
each counted. A figure has its median over the rounds, and its least and most.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence

from tricorn.record import Record
from tricorn_bench.bench import split
from tricorn_bench.bench.report import layout

from benches.harness.process import LOAD_CORE, ROOT, Server, free_port, pinned

UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


class Seen(Record):
    """What a generator reports, in milliseconds, and the CPU time that it took."""

    answered: int
    rate: float
    p50: float
    p90: float
    p99: float
    cpu_seconds: float


class Generator(Record):
    name: str
    command: Callable[[str, int, float], list[str]]
    """Of a URL, for so many connections and seconds."""
    read: Callable[[str, float], Seen]
    """Of what it prints, and the CPU seconds of its process."""
    counted: Callable[[str, int, int], list[str]] | None = None
    """For so many connections and requests."""


def _tricorn(url: str, connections: int, *how: str) -> list[str]:
    return [sys.executable, "-m", "tricorn", "load", "--json", "-c", str(connections), *how, url]


def read_tricorn(text: str, cpu: float) -> Seen:
    """Its own CPU time, without the start of an interpreter."""
    told = json.loads(text)
    p50, p90, p99 = (told["latency"][key] * 1e3 for key in ("p50", "p90", "p99"))
    return Seen(told["answered"], told["rate"], p50, p90, p99, told["generator"]["cpu_seconds"])


def _hey(url: str, connections: int, *how: str) -> list[str]:
    return ["hey", "-cpus", "1", "-c", str(connections), *how, url]


def read_hey(text: str, cpu: float) -> Seen:
    shares = {share: float(seconds) * 1e3 for share, seconds in re.findall(r"(\d+)%+ in ([\d.]+) secs", text)}
    answered = sum(int(count) for count in re.findall(r"\[\d{3}\]\s+(\d+) responses", text))
    (rate,) = re.findall(r"Requests/sec:\s+([\d.]+)", text)
    return Seen(answered, float(rate), shares["50"], shares["90"], shares["99"], cpu)


def read_wrk(text: str, cpu: float) -> Seen:
    found = re.findall(r"^\s+(\d+)%\s+([\d.]+)(us|ms|s)$", text, re.MULTILINE)
    shares = {share: float(value) * UNITS[unit] for share, value, unit in found}
    (answered,) = re.findall(r"(\d+) requests in", text)
    (rate,) = re.findall(r"Requests/sec:\s+([\d.]+)", text)
    return Seen(int(answered), float(rate), shares["50"], shares["90"], shares["99"], cpu)


GENERATORS = (
    Generator(
        "tricorn load",
        lambda url, connections, seconds: _tricorn(url, connections, "-z", f"{seconds:g}s"),
        read_tricorn,
        lambda url, connections, requests: _tricorn(url, connections, "-n", str(requests)),
    ),
    Generator(
        "hey",
        lambda url, connections, seconds: _hey(url, connections, "-z", f"{seconds:g}s"),
        read_hey,
        lambda url, connections, requests: _hey(url, connections, "-n", str(requests)),
    ),
    Generator(
        "wrk",
        lambda url, connections, seconds: ["wrk", "--latency", "-t1", f"-c{connections}", f"-d{seconds:g}s", url],
        read_wrk,
    ),
)


def run(one: Generator, command: Sequence[str]) -> Seen:
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=subprocess.DEVNULL, preexec_fn=lambda: pinned(LOAD_CORE)
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode:
        sys.exit(f"{one.name} ended with status {process.returncode}:\n{text}")
    return one.read(text, usage.ru_utime + usage.ru_stime)


def served(admin: int) -> int:
    """Requests that the server has answered."""
    sums = split.read(admin)
    assert sums is not None
    return round(sums["request_duration_seconds_count"])


def shown(values: Sequence[float], digits: int) -> str:
    middle, least, most = (f"{value:,.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least}–{most})"


def row(name: str, seen: Sequence[Seen], missing: Sequence[int]) -> tuple[str, ...]:
    columns = ([getattr(one, key) for one in seen] for key in ("p50", "p90", "p99"))
    return (
        name,
        shown([one.rate for one in seen], 0),
        *(shown(values, 2) for values in columns),
        shown([one.cpu_seconds / one.answered * 1e6 for one in seen], 1),
        shown([one.answered / one.cpu_seconds for one in seen], 0),
        " ".join(f"{count:+}" for count in missing),
    )


HEADER = ("generator", "requests/s", "p50 ms", "p90 ms", "p99 ms", "CPU µs each", "each CPU second", "server's count")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("  python")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="whole ones for wrk")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-c", "--connections", type=int, default=64)
    arguments = parser.parse_args()
    present = [one for one in GENERATORS if one.command("", 1, 1.0)[0] == sys.executable or shutil.which(one.name)]
    for one in GENERATORS:
        if one not in present:
            print(f"{one.name} is not installed, and left out.")
    port, admin = free_port(), free_port()
    bound = ("-b", f"127.0.0.1:{port}", "--admin-bind", f"127.0.0.1:{admin}")
    url = f"http://127.0.0.1:{port}/"
    with Server([sys.executable, "-m", "tricorn", "-k", "sync", *bound, "benches.apps.wsgi:app"], port):
        for one in present:
            if one.counted is not None:
                before = served(admin)
                seen = run(one, one.counted(url, 50, 200))
                print(f"{one.name} -n 200 -c 50: {seen.answered} answered, the server counts {served(admin) - before}.")
        found: dict[str, list[Seen]] = {one.name: [] for one in present}
        missing: dict[str, list[int]] = {one.name: [] for one in present}
        for _ in range(arguments.rounds):
            for one in present:
                before = served(admin)
                seen = run(one, one.command(url, arguments.connections, arguments.seconds))
                found[one.name].append(seen)
                missing[one.name].append(served(admin) - before - seen.answered)
    print(f"\n{arguments.rounds} rounds of {arguments.seconds:g} s, {arguments.connections} connections, in turns:")
    rows = [row(name, seen, missing[name]) for name, seen in found.items()]
    print(layout.plain(HEADER, rows))
    print("'server's count' is what the server counts more than the generator, in each round.")


if __name__ == "__main__":
    main()
