"""Faults of `tricorn top`."""

from __future__ import annotations

from tests.mutants.fault import Fault

SOURCE = "packages/tricorn-tools/tricorn_tools/top"
UNIT = "tests/unit/tricorn_tools/top"

LIVE_VIEW = (
    Fault(
        "asked_first",
        "what changes the server is done only after a y",
        f"{SOURCE}/keys.py",
        'return asked, view.question if key in ("y", "Y") else None',
        "return asked, view.question",
        (f"{UNIT}/test_keys.py",),
    ),
    Fault(
        "read_only_top",
        "no key changes anything in read-only mode",
        f"{SOURCE}/keys.py",
        "if view.is_read_only:",
        "if False:",
        (f"{UNIT}/test_keys.py",),
    ),
    Fault(
        "no_choice_among_routes",
        "a worker that is not on the screen is not acted on",
        f"{SOURCE}/keys.py",
        'case "enter" | "d" | "k" if view.shows_routes and not view.pane:',
        'case "enter" | "d" | "k" if False:',
        (f"{UNIT}/test_keys.py",),
    ),
    Fault(
        "text_of_requests",
        "no escape sequence of a request reaches the terminal",
        f"{SOURCE}/look.py",
        'return _UNSAFE.sub("?", str(text)[:most])',
        "return str(text)[:most]",
        (f"{UNIT}/test_screen.py",),
    ),
    Fault(
        "rubbish_is_no_rate",
        "what cannot be is not known",
        f"{SOURCE}/change.py",
        "return new - old if 0 <= new - old <= IMPOSSIBLE * max(seconds, 1.0) else None",
        "return new - old",
        (f"{UNIT}/test_change.py",),
    ),
    Fault(
        "pids_of_others",
        "the memory of a process that is not the arbiter's child is not shown",
        f"{SOURCE}/memory.py",
        "if parent == arbiter else None",
        "if parent else None",
        (f"{UNIT}/test_memory.py",),
    ),
    Fault(
        "never_wraps",
        "no line is wider than the terminal",
        f"{SOURCE}/screen.py",
        "cut.append(Span(span.text[:left], span.style))",
        "cut.append(span)",
        (f"{UNIT}/test_screen.py",),
    ),
    Fault(
        "stale_number",
        "a worker is compared with itself, not with the one that had its page before",
        f"{SOURCE}/change.py",
        "then = earlier.get(worker.entry.number)",
        "then = next(iter(earlier.values()), None)",
        (f"{UNIT}/test_change.py", f"{UNIT}/test_source.py"),
    ),
    Fault(
        "silent_arbiter",
        "an arbiter that does not answer leaves the figures of its workers",
        f"{SOURCE}/source.py",
        "if self._region is None:\n                raise",
        "raise",
        (f"{UNIT}/test_source.py",),
    ),
)
