"""A process that changes under the reader: threads, generators, exceptions, greenlets, code that is freed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tricorn import _core

from tests.harness.needs import needs
from tests.harness.pythons import MINORS, interpreter
from tests.integration.doctor.patient import Patient

CODE = Path(__file__).with_name("changing.py").read_text()
OWN = {"<module>", "generator", "raises", "switches", "work", "starts", "made", "<listcomp>"}
STANDARD = ("threading.py", "random.py", "_weakrefset.py", "<frozen importlib._bootstrap>")
WALKS = 3000


@pytest.mark.parametrize("minor", MINORS)
def test_no_walk_crashes_hangs_or_invents_a_frame(tmp_path: Path, minor: int) -> None:
    python = interpreter(minor) or pytest.skip(f"Python 3.{minor} is not installed")
    with Patient(tmp_path, CODE, python=python) as patient:
        _begun(patient)
        made = found = 0
        while made < WALKS:
            walks, discarded, _, frames = _core.doctor_walk(patient.pid, 0.3)
            made, found = made + walks, found + frames
            assert discarded < walks / 2, "most walks find something"
        assert found > made, "a thread has a frame or two"
        lines = len(patient.file.read_text().splitlines())
        for _ in range(20):
            for thread in json.loads(_core.doctor_look(patient.pid, 0.01))["threads"]:
                for frame in thread["python"]:
                    known = frame["function"].rsplit(".", 1)[-1] in OWN and 0 <= frame["line"] <= lines
                    assert known or frame["file"].endswith(STANDARD), frame
        assert patient.look()["threads"], "and the process lives on"


def test_greenlets_that_switch_all_the_time(tmp_path: Path) -> None:
    needs("gevent")
    code = """
    import gevent
    def switching():
        while True:
            gevent.sleep(0)
    gevent.joinall([gevent.spawn(switching) for _ in range(50)])
    """
    with Patient(tmp_path, code) as patient:
        _begun(patient)
        walks, discarded, _, _ = _core.doctor_walk(patient.pid, 1.0)
        assert walks > 100
        assert discarded < walks


def _begun(patient: Patient) -> None:
    from tests.harness import until

    def begun() -> object:
        return any(str(patient.file) in str(thread["python"]) for thread in patient.look()["threads"])

    until(begun, "the code runs")
