"""Formats the findings as text and as JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tricorn_tools.doctor.check.finding import Finding, Severity
from tricorn_tools.doctor.check.scene import Scene

SCHEMA = "tricorn-doctor-check/1"
WIDTH = 110


def status(findings: Sequence[Finding]) -> int:
    """Returns the exit status: 1 if there is a warning or an error."""
    return int(any(finding.severity is not Severity.NOTE for finding in findings))


def text(scene: Scene, findings: Sequence[Finding]) -> str:
    lines = [f"{scene.config.wsgi_app}: {scene.alias}, {scene.concurrency}"]
    for finding in findings:
        head = f"{finding.severity.value.upper():8} "
        lines += ["", *_wrapped(finding.text, head), *_wrapped(finding.cure, "         Fix: ", "              ")]
        lines.append(f"         {finding.link}")
    return "\n".join([*lines, "", _summary(findings)])


def failure(finding: Finding) -> dict[str, Any]:
    """Returns the report of an application that could not be loaded."""
    return {"schema": SCHEMA, "findings": [_as_json(finding)], "status": 1}


def as_json(scene: Scene, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "application": scene.config.wsgi_app,
        "worker_class": scene.alias,
        "workers": scene.config.workers,
        "requests_at_once": scene.at_once,
        "findings": list(map(_as_json, findings)),
        "status": status(findings),
    }


def _as_json(finding: Finding) -> dict[str, str]:
    return {
        "id": finding.id,
        "severity": finding.severity.value,
        "text": finding.text,
        "cure": finding.cure,
        "link": finding.link,
    }


def _wrapped(sentence: str, first: str, rest: str = " " * 9) -> list[str]:
    return textwrap.wrap(
        sentence, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def _summary(findings: Sequence[Finding]) -> str:
    if not findings:
        return "No problems found."
    counted = Counter(finding.severity for finding in findings)
    words = [f"{counted[each]} {each.value}{'s' if counted[each] != 1 else ''}" for each in Severity if counted[each]]
    return f"{', '.join(words)}."
