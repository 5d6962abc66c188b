"""The report: text for people, JSON for programs, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

from tricorn_tools.doctor.check import report
from tricorn_tools.doctor.check.finding import Finding, Severity

from tests.unit.tricorn_tools.doctor.check.scenes import scene

ROOT = Path(__file__).resolve().parents[5]
NOTE = Finding("processors", Severity.NOTE, "A note.", "Nothing.")
WARNING = Finding("databases", Severity.WARNING, "A warning " + "of many words " * 10 + "ends.", "A cure.")


def test_notes_do_not_count() -> None:
    assert report.status([]) == report.status([NOTE]) == 0
    assert report.status([NOTE, WARNING]) == 1


def test_doctor_check_report_as_text() -> None:
    lines = report.text(scene("gthread", threads=(), workers=2), [WARNING, NOTE]).splitlines()
    assert lines[0].startswith("app:app: gthread, 2 workers x ")
    assert lines[2].startswith("WARNING  A warning of many words")
    assert all(len(line) <= report.WIDTH for line in lines)
    assert "         Fix: A cure." in lines
    assert "         docs/diagnose/check.md#databases" in lines
    assert lines[-1] == "1 warning, 1 note."
    assert report.text(scene(), []).endswith("No problems found.")


def test_doctor_check_report_as_json() -> None:
    found = json.loads(json.dumps(report.as_json(scene(workers=3), [WARNING])))
    assert (found["schema"], found["worker_class"], found["workers"]) == ("tricorn-doctor-check/1", "sync", 3)
    (finding,) = found["findings"]
    assert finding == {
        "id": "databases", "severity": "warning", "text": WARNING.text, "cure": "A cure.",
        "link": "docs/diagnose/check.md#databases",
    }  # fmt: skip
    assert found["status"] == 1
