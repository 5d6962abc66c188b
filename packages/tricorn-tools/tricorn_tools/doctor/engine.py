"""The look itself, which is native: it takes no GIL of the process it looks at, and sends it no signal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tricorn import _core

Report = Mapping[str, Any]
"""Report in the format of `crates/tricorn-doctor/src/report.rs`."""

SECONDS = 0.1
"""Seconds that a look takes: shares of processor time refer to them."""


class DoctorError(Exception):
    """Nothing can be told; the message is a sentence that says why, and what to do."""


def look(pid: int, seconds: float = SECONDS) -> Report:
    """Reports what the threads of a process do. Raises DoctorError."""
    try:
        report: Report = json.loads(_core.doctor_look(pid, seconds))
    except (ProcessLookupError, PermissionError, ValueError, OverflowError) as error:
        raise DoctorError(_sentence(str(error))) from None
    return report


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].removesuffix(".") + "."
