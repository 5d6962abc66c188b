"""A plugin of pytest that writes the counts and failures of a run to a file: `-p tests.record --record FILE`.

JUnit's XML has no node ids, which are what pytest takes to run a test again. `tests/run.py` reads the file.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

REASON = 500
"""Characters of a failure's message that are kept."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", metavar="FILE", help="write the counts and the failures of this run to FILE")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--record")
    # A process of xdist reports to the one that started it, which alone writes.
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(path)))


class Recorder:
    """Counts reports, and keeps why each failed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: Counter[str] = Counter()
        self._failures: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._counts["failed" if report.when == "call" else "error"] += 1
            self._failures.setdefault(report.nodeid, _reason(report))
        elif report.when == "call" or report.skipped:
            self._counts[report.outcome] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._counts["error"] += 1

    def pytest_sessionfinish(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps({"counts": self._counts, "failures": self._failures}))


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr)[:REASON]
