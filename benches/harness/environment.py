"""The machine and the versions a figure belongs to. No host names, no paths."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

from benches.harness.process import ROOT

BENCH_PYTHON = ROOT / ".venvs" / "bench" / "bin" / "python"
PACKAGES = (
    *("gunicorn", "gevent", "waitress", "granian", "uvicorn", "httptools", "uvloop"),
    *("fastpysgi", "fastwsgi", "bjoern", "meinheld", "flask"),
    *("greenlet", "eventlet", "psycopg2-binary", "psycogreen"),
    *("websockets", "hypercorn", "tornado", "aiohttp"),
)


def describe() -> dict[str, str]:
    cpu = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    described = {
        "cpu": f"{cpu.group(1) if cpu else platform.machine()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "rust": first_line(["rustc", "--version"]),
        "cc": first_line(["cc", "--version"]),
        "tricorn": tricorn_version(),
    }
    return {**described, **peer_versions()}


def peer_versions() -> dict[str, str]:
    if not BENCH_PYTHON.exists():
        return {}  # no peer was asked for
    code = (
        "import importlib.metadata as m, json, sys\n"
        "print(json.dumps({d.name.lower(): d.version for d in m.distributions() if d.name.lower() in sys.argv[1:]}))"
    )
    done = subprocess.run([BENCH_PYTHON, "-c", code, *PACKAGES], capture_output=True, text=True)
    versions: dict[str, str] = json.loads(done.stdout or "{}")
    return {name: versions[name] for name in PACKAGES if name in versions}


def tricorn_version() -> str:
    try:
        version = metadata.version("tricorn")
    except metadata.PackageNotFoundError:
        return "not installed"
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return f"{version} ({commit.stdout.strip() or 'no commit'})"


def installation_failures() -> dict[str, str]:
    """Requirement name to the reason why it could not be installed (written by scripts/setup_bench)."""
    listing = BENCH_PYTHON.parent.parent / "failures.txt"
    lines = listing.read_text().splitlines() if listing.exists() else []
    pairs = (line.split(": ", 1) for line in lines if ": " in line)
    return {re.split(r"[=<>]", requirement)[0]: reason for requirement, reason in pairs}


def first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return "not installed"
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0].strip() if lines else "unknown"
