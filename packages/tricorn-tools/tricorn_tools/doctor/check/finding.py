"""One thing that was found: how bad it is, a sentence, what to do, and where that is explained."""

from __future__ import annotations

from enum import Enum

from tricorn.record import Record

PAGE = "docs/diagnose/check.md"


class Severity(Enum):
    ERROR = "error"
    """It will fail, or hold up all requests of a worker."""
    WARNING = "warning"
    """It will under load, or in a case that is not rare."""
    NOTE = "note"
    """It may be as it is meant to be. The exit status does not tell of it."""

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Finding(Record):
    id: str
    """The heading on the page that explains it, as its anchor."""
    severity: Severity
    text: str
    cure: str

    @property
    def link(self) -> str:
        return f"{PAGE}#{self.id}"
