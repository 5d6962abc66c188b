"""The machine and the versions a figure belongs to. No host names, no paths."""

from __future__ import annotations

import os
import platform
import re
import resource
from collections.abc import Sequence
from pathlib import Path

from tricorn import __version__
from tricorn.record import Record
from tricorn_bench.bench.errors import BenchError


class Cores(Record):
    """Cores of the server and of the load generator: the same where there is only one."""

    server: tuple[int, ...]
    load: tuple[int, ...]

    @classmethod
    def split(cls, available: Sequence[int]) -> Cores:
        """A quarter for the load generator, at least one; it has to be faster than what it measures."""
        cores = sorted(available)
        if len(cores) == 1:
            return cls((cores[0],), (cores[0],))
        share = max(1, len(cores) // 4)
        return cls(tuple(cores[:-share]), tuple(cores[-share:]))

    @classmethod
    def choose(cls, server: str | None, load: str | None) -> Cores:
        """Applies `--cores` and `--load-cores`, and splits what they leave open. Raises BenchError."""
        available = os.sched_getaffinity(0)
        found = cls.split(sorted(available))
        chosen = cls(
            _numbers(server, available) if server else found.server, _numbers(load, available) if load else found.load
        )
        if server and not load:
            rest = tuple(sorted(available - set(chosen.server)))
            return cls(chosen.server, rest[-1:] or chosen.server)
        return chosen

    @property
    def apart(self) -> bool:
        return not set(self.server) & set(self.load)


def _numbers(text: str, available: set[int]) -> tuple[int, ...]:
    """`0,2-3`."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match:
            raise BenchError(f"Invalid cores {text!r}: expected numbers such as 0,2-3.")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    if missing := set(found) - available:
        had = ", ".join(map(str, sorted(available)))
        raise BenchError(f"This process may not run on core {min(missing)}, only on {had}.")
    return tuple(found)


def describe(cores: Cores) -> dict[str, str]:
    cpu = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "cpu": f"{cpu.group(1) if cpu else platform.machine()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "tricorn": __version__,
        "server's cores": ", ".join(map(str, cores.server)),
        "load generator's cores": ", ".join(map(str, cores.load))
        + ("" if cores.apart else " (shared with the server)"),
        "load average before": f"{os.getloadavg()[0]:.2f}",
        "open files": str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    }


def demand_descriptors(connections: int, limit: int) -> None:
    """Raises BenchError if `ulimit -n`, raised as far as it goes, is too low for so many connections."""
    needed = connections + 200
    if needed > limit:
        raise BenchError(
            f"{connections:,} connections need {needed:,} open files, and this process may have {limit:,}: "
            f"raise the hard limit (ulimit -Hn {needed}, as root), or measure with fewer connections."
        )
