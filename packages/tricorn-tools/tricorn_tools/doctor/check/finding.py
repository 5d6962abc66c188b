"""A finding: its severity, the problem, the fix, and the page that explains it."""

from __future__ import annotations

from enum import Enum

from tricorn.record import Record

PAGE = "docs/diagnose/check.md"


class Severity(Enum):
    ERROR = "error"
    """Will fail, or block all requests of a worker."""
    WARNING = "warning"
    """Will do so under load, or in a common case."""
    NOTE = "note"
    """May be intended. Does not change the exit status."""

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Finding(Record):
    id: str
    """Anchor of the heading that explains it."""
    severity: Severity
    text: str
    cure: str

    @property
    def link(self) -> str:
        return f"{PAGE}#{self.id}"
