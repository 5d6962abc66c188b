"""The runner of the Python tests: what runs again, what is recorded, and what status it ends with."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import run
from tests.run import FAILED, NOTHING_COLLECTED, OK, Run

NAME = "tests/a.py::test_a_pidfile"
INTERRUPTED = 2


class Pytest:
    """Stands for pytest: a run for each lane, and the lanes that were asked for."""

    def __init__(self, *runs: Run) -> None:
        self._runs = {run.lane: run for run in runs}
        self.asked: dict[str, list[str]] = {}

    def __call__(self, lane: str, arguments: Sequence[str]) -> Run:
        self.asked[lane] = list(arguments)
        return self._runs.get(lane, Run(lane, OK, Counter(passed=3), {}))


@pytest.fixture(autouse=True)
def flaky(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    monkeypatch.setattr(run, "FLAKY", tmp_path / "flaky.json")
    return tmp_path / "flaky.json"


def use(monkeypatch: pytest.MonkeyPatch, *runs: Run) -> Pytest:
    stand_in = Pytest(*runs)
    monkeypatch.setattr(run, "pytest", stand_in)
    return stand_in


def failing(lane: str, *names: str) -> Run:
    return Run(lane, FAILED, Counter(passed=10, failed=len(names)), dict.fromkeys(names, "assert 1 == 2"))


def test_a_flaky_test_is_recorded_with_its_reason_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flaky: Path
) -> None:
    pytest_ = use(monkeypatch, failing("parallel", NAME), Run("again", OK, Counter(passed=1), {}))
    assert run.main([]) == OK
    assert run.main([]) == OK, "a second run adds to the record"
    assert pytest_.asked["again"] == ["-v", NAME]
    records = json.loads(flaky.read_text())
    assert [(each["name"], each["lane"], each["reason"]) for each in records] == [
        (NAME, "parallel", "assert 1 == 2")
    ] * 2
    assert {"revision", "when"} < set(records[0])
    told = capsys.readouterr().out
    assert f"FLAKY {NAME}\n1 failed at first and passed alone" in told
    assert " 14 passed, 1 flaky in " in told


def test_a_test_that_fails_twice_fails_the_run_and_is_not_flaky(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flaky: Path
) -> None:
    use(monkeypatch, failing("parallel", NAME), failing("again", NAME))
    assert run.main([]) == FAILED
    assert not flaky.exists()
    assert " 1 failed, 13 passed in " in capsys.readouterr().out


def test_a_rerun_that_is_interrupted_makes_nothing_flaky(monkeypatch: pytest.MonkeyPatch, flaky: Path) -> None:
    use(monkeypatch, failing("serial", NAME), Run("again", INTERRUPTED, Counter(), {}))
    assert run.main([]) == INTERRUPTED
    assert not flaky.exists()


def test_the_night_has_no_rerun_and_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest_ = use(monkeypatch, failing("serial", NAME))
    assert run.main(["--all", "-k", "pidfile"]) == FAILED
    assert set(pytest_.asked) == {"parallel", "serial"}
    assert pytest_.asked["parallel"][:2] == ["-m", "not needs_cpu"]
    assert pytest_.asked["serial"][:2] == ["-m", "needs_cpu"]
    assert pytest_.asked["parallel"][-2:] == ["-k", "pidfile"]


def test_many_failures_have_no_rerun(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest_ = use(monkeypatch, failing("parallel", *(f"{NAME}[{number}]" for number in range(run.RUN_AGAIN + 1))))
    assert run.main([]) == FAILED
    assert "again" not in pytest_.asked


def test_the_serial_lane_collects_its_own_rooms_unless_others_are_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest_ = use(monkeypatch)
    run.main([])
    assert pytest_.asked["serial"][-1].startswith("tests/")
    (tmp_path / "test_given.py").touch()
    run.main(["test_given.py::test_a_pidfile"])
    assert pytest_.asked["serial"][-1] == "test_given.py::test_a_pidfile"


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ([OK, NOTHING_COLLECTED], OK),
        ([NOTHING_COLLECTED, FAILED], FAILED),
        ([NOTHING_COLLECTED, NOTHING_COLLECTED], NOTHING_COLLECTED),
        ([FAILED, INTERRUPTED], INTERRUPTED),
    ],
)
def test_the_status_of_lanes_is_the_worst_of_those_that_had_tests(statuses: list[int], status: int) -> None:
    assert run.worst(statuses) == status


BUSY = """
import subprocess, sys

def test_busy():
    used = "sum(__import__('resource').getrusage(0)[:2])"
    subprocess.run([sys.executable, "-c", f"while {used} < 1.5: pass"], check=True)
"""


def test_a_run_tells_its_processor_time_with_that_of_servers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(run.__file__).parent.parent))
    (tmp_path / "test_it.py").write_text(BUSY)
    assert run.pytest("serial", ["-q", "-c", "/dev/null", str(tmp_path)]).status == OK
    told = re.search(r"   serial: (\d+) s of processor time in \d+ s\n", capfd.readouterr().out)
    assert told is not None
    assert int(told[1]) >= 2, "pytest, and the child of a test"


def test_the_recorder_keeps_node_ids_and_reasons(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_kept(): pass\n\n\ndef test_lost():\n    assert 1 == 2, 'the pidfile stays'\n"
    )
    record = tmp_path / "record.json"
    words = ("-m", "pytest", "-q", "-p", "tests.record", f"--record={record}", "-c", "/dev/null", str(tmp_path))
    done = subprocess.run(
        [sys.executable, *words], cwd=Path(run.__file__).parent.parent, capture_output=True, text=True
    )
    assert done.returncode == FAILED, done.stdout
    told = json.loads(record.read_text())
    assert told["counts"] == {"passed": 1, "failed": 1}
    ((name, reason),) = told["failures"].items()
    assert name.endswith("test_it.py::test_lost")
    assert "the pidfile stays" in reason
