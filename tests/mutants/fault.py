"""A row of the tables: a small change to one file that breaks one promise, and who is to notice it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """`before` is replaced by `after`.

    In Rust all faults are compiled at once, as `if fault(name) { after } else { before }`, so both are expressions of
    one type, or statements that end with a semicolon or a brace.
    """

    name: str
    breaks: str
    """What no longer holds, in words."""
    path: str
    before: str
    after: str
    tests: tuple[str, ...]
    """Arguments of pytest, or for Rust `crates/CRATE TARGET FILTER`, where the target may be `lib`."""
    at: str = ""
    """What stands before `before`, where that alone is found several times: the first after this is meant."""
