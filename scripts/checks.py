"""Runs the checks of this repository and prints the result of each as a row of a table.

    python scripts/checks.py lint|all

Output of a check is shown only when it fails, after the table. Lints run one after another, then the tests side by
side: those in Rust mostly wait.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PYTHON = sys.executable


class Check(NamedTuple):
    name: str
    command: list[str]
    what: str


LINT = [
    Check("format (Rust)", ["cargo", "fmt", "--all", "--check"], "rustfmt; `make format` repairs"),
    Check("format (Python)", [f"{BIN}/ruff", "format", "--check", "."], "ruff format; `make format` repairs"),
    Check("ruff", [f"{BIN}/ruff", "check", "--quiet", "."], "lints of pyproject.toml"),
    Check(
        "clippy", ["cargo", "clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"], "no warnings"
    ),
    Check("mypy", [f"{BIN}/mypy"], "--strict on python/tricorn, scripts and benches"),
    Check("stubtest", [PYTHON, "-m", "mypy.stubtest", "tricorn._core"], "the stub says what the binary does"),
    Check("import-linter", [f"{BIN}/lint-imports"], "arrows between the Python packages"),
    Check("crates", [PYTHON, "scripts/check_crates.py"], "arrows between the crates"),
    Check("tidy", [PYTHON, "scripts/tidy.py"], "size budgets, markers, who may import the core"),
    Check("settings", [PYTHON, "scripts/render_settings.py", "--check"], "docs/settings.md says what the records say"),
    Check("drivers", [PYTHON, "scripts/render_drivers.py", "--check"], "docs/GREENLETS.md says what the records say"),
    Check("links", [PYTHON, "scripts/check_links.py"], "links between the documents"),
]

TESTS = [
    Check("tests (Rust)", ["cargo", "test", "--workspace", "--exclude", "tricorn-py", "--quiet"], "all of them"),
    Check(
        "tests (unit)",
        [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit"],
        "no processes, no sockets",
    ),
]


def run(check: Check) -> tuple[bool, float, str]:
    start = time.monotonic()
    done = subprocess.run(check.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, time.monotonic() - start, done.stdout


def show(checks: list[Check]) -> list[tuple[Check, str]]:
    """Runs them at once; those that failed, with what they said."""
    failures = []
    with ThreadPoolExecutor() as pool:
        for check, result in [(check, pool.submit(run, check)) for check in checks]:
            print(f"  {check.name:<16} ", end="", flush=True)
            passed, seconds, output = result.result()
            print(f"{'ok' if passed else 'FAILED':<7} {seconds:5.1f} s   {check.what}", flush=True)
            if not passed:
                failures.append((check, output))
    return failures


def main() -> int:
    one_by_one = [[check] for check in LINT]
    groups = {"lint": one_by_one, "all": [*one_by_one, TESTS]}.get(sys.argv[1] if len(sys.argv) > 1 else "all")
    if groups is None:
        print(__doc__)
        return 2
    failures = [failure for group in groups for failure in show(group)]
    count = sum(map(len, groups))
    for check, output in failures:
        print(f"\n==== {check.name}: {' '.join(check.command)}\n{output.rstrip()}".replace(f"{ROOT}/", ""))
    print(f"\n{len(failures)} of {count} checks failed" if failures else f"\nall {count} checks passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
