"""Faults of `tricorn doctor`."""

from __future__ import annotations

from tests.mutants.fault import Fault

CRATE = "crates/tricorn-doctor"
SRC = f"{CRATE}/src"
ROOM = "tests/integration/doctor"

DOCTOR = (
    Fault(
        "gil_victim_by_address",
        "a thread that waits for the GIL is told from one that waits for a lock",
        f"{SRC}/look.rs",
        "(gil.start..gil.end).contains(&entered.arguments[0])",
        "false",
        (f"{ROOM}/test_interpreters.py -k victim",),
    ),
    Fault(
        "loop_of_one_instruction",
        "a loop that is always seen at its jump is Python code, and no call",
        f"{SRC}/look.rs",
        "place == *first && !place.jumps",
        "place == *first",
        (f"{ROOM}/test_interpreters.py -k one_instruction",),
    ),
    Fault(
        "frames_that_went",
        "a frame that only the first of two walks found is not told",
        f"{SRC}/python/frames.rs",
        "one.is_same(other)",
        "one.address == other.address",
        (f"{CRATE} lib frames",),
    ),
    Fault(
        "lines_without_a_number",
        "an instruction without a line has none",
        f"{SRC}/python/lines.rs",
        "has_line.then_some(line)",
        "Some(line)",
        (f"{CRATE} lib lines",),
    ),
    Fault(
        "busy_without_a_processor",
        "a thread that gets half a processor, and wants a whole one, computes",
        f"{SRC}/verdict.rs",
        "evidence.running / (1.0 - evidence.queued).max(0.01) >= 0.5",
        "evidence.running >= 0.5",
        (f"{CRATE} lib verdict",),
    ),
    Fault(
        "poll_of_a_subprocess",
        "what ends in selectors.select is idle only if a loop has called it",
        f"{SRC}/naming.rs",
        '(is(first, "selectors.py", &["select"]) && of_loop)',
        '(is(first, "selectors.py", &["select"]) || of_loop)',
        (f"{CRATE} lib naming", f"{ROOM}/test_waits.py -k only_looks"),
    ),
)
