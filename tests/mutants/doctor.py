"""Faults of `tricorn doctor`, of offloaded calls, of cures, and of the static check."""

from __future__ import annotations

from tests.mutants.fault import Fault

CRATE = "crates/tricorn-doctor"
SRC = f"{CRATE}/src"
ROOM = "tests/integration/doctor"
OFFLOADING = "python/tricorn/offloading"
CURES = "python/tricorn/green/cures"
CHECK = "python/tricorn/doctor/check"
IO = "crates/tricorn-io"
STALLS = f"{IO}/src/monitor/stalls"
HEALING = "tests/integration/drivers/test_healing.py"

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
        f"{SRC}/glances.rs",
        "place == *first && !place.jumps",
        "place == *first",
        (f"{ROOM}/test_interpreters.py -k one_instruction",),
    ),
    Fault(
        "loop_around_a_call",
        "a loop around a short call is Python code",
        f"{SRC}/look.rs",
        "const CLOSE_GLANCES: usize = 32;",
        "const CLOSE_GLANCES: usize = 0;",
        (f"{ROOM}/test_interpreters.py -k short_call",),
    ),
    Fault(
        "garbage",
        "a collection of garbage is told as one",
        f"{SRC}/verdict.rs",
        "Evidence { collects: true, .. } if busy => GcPause,",
        "",
        (f"{ROOM}/test_interpreters.py -k garbage",),
    ),
    Fault(
        "slices",
        "a wait in slices is one wait only where the Python frame stays",
        f"{SRC}/verdict.rs",
        "if *position != PositionEvidence::Still || evidence.running + evidence.queued > RESTS =>",
        "if evidence.running + evidence.queued > RESTS =>",
        (f"{CRATE} lib verdict",),
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
    Fault(
        "wake_up_before_the_wait",
        "a call that ends before its greenlet waits does not let it wait for ever",
        f"{OFFLOADING}/hubs.py",
        "            if self._calls:  # libev",
        "            if False:  # libev",
        ("tests/unit/offloading/test_hubs.py -k gevent",),
    ),
    Fault(
        "a_call_that_has_not_begun",
        "a call whose greenlet has gone before it began is not made",
        f"{OFFLOADING}/call.py",
        "            if self._was_left:\n                return\n",
        "            pass\n",
        (f"{HEALING} -k gone",),
    ),
    Fault(
        "calls_of_one_object_meet",
        "calls of one object are made one after another",
        f"{OFFLOADING}/__init__.py",
        "if how.serial else",
        "if False else",
        ("tests/unit/offloading/test_offload.py -k one_after_another",),
    ),
    Fault(
        "lent_places",
        "threads that wait for their callers do not keep others from calling",
        f"{OFFLOADING}/pool.py",
        "self._lent += 1",
        "self._lent += 0",
        ("tests/unit/offloading/test_pool.py -k lends",),
    ),
    Fault(
        "threads_of_a_child",
        "a process that was forked makes threads of its own",
        f"{OFFLOADING}/pool.py",
        "        pool._reset()\n",
        "        pass\n",
        (f"{HEALING} -k forked",),
    ),
    Fault(
        "callbacks_come_home",
        "delivery reports are called by the greenlet that waits",
        f"{CURES}/kafka.py",
        "visit = None if report is None else brought(report)",
        "visit = report",
        (f"{HEALING} -k keeps_its_promises",),
    ),
    Fault(
        "assigned_by_another_thread",
        "what a rebalance callback assigns is assigned by the thread that librdkafka called back on",
        f"{CURES}/kafka.py",
        "    if how.serial:\n",
        "    if False:\n",
        (f"{HEALING} -k rebalances",),
    ),
    Fault(
        "flush_for_all",
        "a healed flush waits for what was produced before it, and no longer",
        f"{CURES}/kafka.py",
        "if left == 0 or outstanding.is_through(epoch):",
        "if left == 0:",
        (f"{HEALING} -k produced_before",),
    ),
    Fault(
        "healed_too_late",
        "a library that was imported before is not healed, and the log names the place",
        "python/tricorn/green/drivers/finder.py",
        "    if not early:\n",
        "    if True:\n",
        (f"{HEALING} -k imported_before",),
    ),
    Fault(
        "notes_count",
        "notes do not change the exit status of doctor check",
        f"{CHECK}/report.py",
        "finding.severity is not Severity.NOTE",
        "True",
        ("tests/unit/doctor/check/test_report.py",),
    ),
    Fault(
        "quota_of_the_groups_above",
        "the smallest quota of a cgroup and of those above it counts",
        f"{CHECK}/cgroup.py",
        "return min(quotas, default=None)",
        "return quotas[0] if quotas else None",
        ("tests/unit/doctor/check/test_cgroup.py -k smallest",),
    ),
    Fault(
        "evidence_of_afterwards",
        "what was seen when the loop had gone on is not told of what had held it up",
        f"{STALLS}.rs",
        "episode.end.is_none_or(|end| finding.at <= end)",
        "true",
        (f"{IO} lib stalls",),
    ),
    Fault(
        "stalls_are_summed_up",
        "what comes again within seconds is counted, and not told each time",
        f"{STALLS}.rs",
        "now.saturating_sub(kinds[index].told) < PAUSE",
        "false",
        (f"{IO} lib stalls",),
    ),
    Fault(
        "the_first_request_may_import",
        "nothing is told before a worker has answered a request",
        "crates/tricorn-io/src/monitor/mod.rs",
        "board.get(Word::Requests) > 0",
        "true",
        ("tests/integration/test_stalls.py -k first",),
    ),
    Fault(
        "long_work_has_an_end",
        "a stall is as long as the loop's own clock says",
        "crates/tricorn-io/src/waiting/loop_time.rs",
        "(since != 0 && (since..end).contains(&moment)).then_some(end)",
        "None",
        (f"{IO} lib loop_time",),
    ),
)
