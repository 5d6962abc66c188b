"""Runs the checks of this repository and prints the result of each as a row of a table.

    python scripts/checks.py lint|all

Output of a check is shown only when it fails, after the table. A check that cannot be made without a network ends with
status 75: it neither fails nor passes, and its row says why. Lints run one after another, then the tests side by side:
those in Rust mostly wait.
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


NOT_MADE = 75
"""EX_TEMPFAIL of sysexits.h."""


class Check(NamedTuple):
    name: str
    command: list[str]
    what: str


CARGO_TEST = ["cargo", "test", "--profile", "testing", "--workspace", "--exclude", "tricorn-py"]

LINT = [
    Check("format (Rust)", ["cargo", "fmt", "--all", "--check"], "rustfmt; `make format` repairs"),
    Check("format (Python)", [f"{BIN}/ruff", "format", "--check", "."], "ruff format; `make format` repairs"),
    Check("ruff", [f"{BIN}/ruff", "check", "--quiet", "."], "lints of pyproject.toml"),
    Check(
        "clippy",
        ["cargo", "clippy", "--profile", "testing", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
        "no warnings",
    ),
    Check("mypy", [f"{BIN}/mypy"], "--strict on python/tricorn, packages, scripts and benches"),
    Check("stubtest", [PYTHON, "-m", "mypy.stubtest", "tricorn._core"], "the stub says what the binary does"),
    Check("import-linter", [f"{BIN}/lint-imports"], "arrows between the Python packages"),
    Check(
        "crates", [PYTHON, "scripts/check_crates.py"], "arrows between the crates; licences and sources of the others"
    ),
    Check("circles", [PYTHON, "scripts/check_circles.py"], "no file imports itself by way of others"),
    Check("audit", [PYTHON, "scripts/audit.py", "--quick"], "no locked version has a known vulnerability"),
    Check("tidy", [PYTHON, "scripts/tidy.py"], "size budgets, markers, who may import the core"),
    Check(
        "settings",
        [PYTHON, "scripts/render_settings.py", "--check"],
        "docs/reference/settings.md and docs/migrate/flags.md say what the records say",
    ),
    Check(
        "completions",
        [PYTHON, "scripts/render_completions.py", "--check"],
        "completions of shells have what the records say",
    ),
    Check(
        "drivers",
        [PYTHON, "scripts/render_drivers.py", "--check"],
        "docs/how-it-works/greenlets.md says what the records say",
    ),
    Check(
        "performance",
        [PYTHON, "-m", "benches.render.performance", "--check"],
        "docs/how-it-works/performance.md is what the newest classical run has",
    ),
    Check(
        "fleet",
        [PYTHON, "-m", "benches.render.fleet", "--check"],
        "docs/how-it-works has what the newest simulation says",
    ),
    Check(
        "runs", [PYTHON, "-m", "benches.render.runs", "--check"], "benches/runs/README.md has every run that is kept"
    ),
    Check("archive", [PYTHON, "-m", "benches.archive", "--check"], "raw data of runs is packed"),
    Check(
        "deploying",
        [PYTHON, "scripts/render_deploying.py", "--check"],
        "docs/deploying has the files that `tricorn init` prints",
    ),
    Check(
        "reference",
        [PYTHON, "scripts/render_reference.py", "--check"],
        "docs/reference says what records and classes say",
    ),
    Check(
        "log lines",
        [PYTHON, "scripts/render_log_lines.py", "--check"],
        "docs/reference/log-lines.md has every line of the log",
    ),
    Check("mutants", [PYTHON, "scripts/mutants.py", "--check"], "each fault of `make mutants` fits its file"),
    Check("links", [PYTHON, "scripts/check_links.py"], "links between the documents"),
]

TESTS = [
    Check(
        "tests (Rust)",
        [*CARGO_TEST, "--quiet", "--", "--skip", "ten_thousand"],
        "all but the longest, which `make test` has too",
    ),
    Check(
        "tests (unit)",
        [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "tests/unit"],
        "without servers",
    ),
]


class Result(NamedTuple):
    status: int
    seconds: float
    output: str

    @property
    def word(self) -> str:
        return {0: "ok", NOT_MADE: "skipped"}.get(self.status, "FAILED")


def run(check: Check) -> Result:
    start = time.monotonic()
    done = subprocess.run(check.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return Result(done.returncode, time.monotonic() - start, done.stdout)


def show(checks: list[Check]) -> list[tuple[Check, Result]]:
    """Runs them at once and prints a row for each."""
    results = []
    with ThreadPoolExecutor() as pool:
        for check, result in [(check, pool.submit(run, check)) for check in checks]:
            print(f"  {check.name:<16} ", end="", flush=True)
            made = result.result()
            what = made.output.strip() if made.status == NOT_MADE else check.what
            print(f"{made.word:<7} {made.seconds:5.1f} s   {what}", flush=True)
            results.append((check, made))
    return results


def main() -> int:
    one_by_one = [[check] for check in LINT]
    groups = {"lint": one_by_one, "all": [*one_by_one, TESTS]}.get(sys.argv[1] if len(sys.argv) > 1 else "all")
    if groups is None:
        print(__doc__)
        return 2
    results = [result for group in groups for result in show(group)]
    failures = [(check, result) for check, result in results if result.word == "FAILED"]
    skipped = [check for check, result in results if result.word == "skipped"]
    for check, result in failures:
        print(f"\n==== {check.name}: {' '.join(check.command)}\n{result.output.rstrip()}".replace(f"{ROOT}/", ""))
    passed = len(results) - len(failures) - len(skipped)
    also = f", {len(skipped)} could not be made" if skipped else ""
    print(f"\n{len(failures)} of {len(results)} checks failed" if failures else f"\n{passed} checks passed{also}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
