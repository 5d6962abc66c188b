"""Faults of the metrics: what is counted, by whom it is kept, and who is told."""

from __future__ import annotations

from tests.mutants.fault import Fault

IO = "crates/tricorn-io"
SRC = f"{IO}/src"
LEDGER = f"{SRC}/scoreboard/ledger.rs"
ARBITER = "python/tricorn/arbiter"
TOTALS = "tests/integration/test_metrics.py -k totals"

METRICS = (
    Fault(
        "edges_are_below",
        "a time that is an edge is not above it (le)",
        f"{SRC}/scoreboard/buckets.rs",
        "nanos.saturating_sub(1)",
        "nanos",
        (f"{IO} lib buckets",),
    ),
    Fault(
        "the_dead_have_counted",
        "what a worker has counted stays when it is gone",
        LEDGER,
        "active.word(index).wrapping_add(page.word(index))",
        "active.word(index)",
        (f"{IO} lib ledger", TOTALS),
    ),
    Fault(
        "the_dead_count_once",
        "what the ledger has is no longer on the page",
        LEDGER,
        "copied().chain(CODES..TABLE).for_each(|index| page.put(index, 0));",
        "",
        (f"{IO} lib ledger", TOTALS),
    ),
    Fault(
        "readings_belong_together",
        "a reader reads again when counts have moved meanwhile",
        f"{SRC}/scoreboard/flip.rs",
        "self.0.load(Relaxed) == before",
        "true",
        (f"{IO} lib ledger",),
    ),
    Fault(
        "a_route_has_one_place",
        "a route has the same place in all workers",
        f"{SRC}/scoreboard/routes.rs",
        "if found != hash {",
        "if found == hash && place == 1 {",
        (f"{IO} lib routes",),
    ),
    Fault(
        "slices_are_one_calls",
        "what a thread uses between two looks is a call's that it was at both times",
        f"{SRC}/monitor/slicer.rs",
        "(before.owner, before.since) == (slice.owner, slice.since)",
        "before.owner == slice.owner",
        (f"{IO} lib slicer",),
    ),
    Fault(
        "marks_are_of_one_call",
        "what a thread had come to in an earlier call says nothing of this one",
        f"{SRC}/waiting/mark.rs",
        "self.call.load(Acquire) != call",
        "self.call.load(Acquire) == 0",
        (f"{IO} lib mark",),
    ),
    Fault(
        "waits_of_calls_count",
        "what calls on threads have waited is counted",
        f"{SRC}/reactor/write.rs",
        "u64::from(split.blocked) * 1000",
        "0",
        ("tests/integration/test_call_time.py -k sleeps",),
    ),
    Fault(
        "admin_allow",
        "only addresses in admin_allow are answered",
        f"{SRC}/reactor/admin.rs",
        "paths.allow.allows(conn.origin.peer.ip())",
        "true",
        ("tests/integration/test_metrics.py -k who_may_ask",),
    ),
    Fault(
        "live_gauges_end",
        "gauges of live processes end with their worker",
        f"{ARBITER}/process_table.py",
        "self.app_metrics.bury(handle.worker.slot)",
        "pass",
        ("tests/integration/test_metrics_of_applications.py -k survive",),
    ),
    Fault(
        "the_arbiter_notes",
        "the page has the last ten minutes, not only this moment",
        f"{ARBITER}/loop.py",
        "self._history.note(now)",
        "pass",
        ("tests/integration/test_admin_page.py -k noted",),
    ),
    Fault(
        "workers_are_buried",
        "the arbiter gives the counts of a dead worker to the ledger",
        f"{ARBITER}/process_table.py",
        "self.ledger.bury(Scoreboard(handle.pages.page(handle.page)))",
        "Scoreboard(handle.pages.page(handle.page)).vacate()",
        (TOTALS,),
    ),
    Fault(
        "one_region",
        "generations whose pages differ in length see one another",
        f"{ARBITER}/generations.py",
        "old.pages.holds(new.page_bytes(), new.page_count())",
        "old.pages.size == new.page_bytes()",
        (TOTALS,),
    ),
    Fault(
        "kills_are_told",
        "a SIGKILL that the arbiter did not send is told apart",
        f"{ARBITER}/policy/endings.py",
        "status == -Signals.SIGKILL and sent is not Signals.SIGKILL",
        "False",
        ("tests/unit/arbiter/policy/test_endings.py",),
    ),
    Fault(
        "loops_wait",
        "a loop that waits for events does not work",
        f"{SRC}/waiting/loop_time.rs",
        "waited.saturating_add(waits)",
        "waits",
        (f"{IO} lib loop_time",),
    ),
    Fault(
        "delays_are_no_blocks",
        "a thread that wants a processor is not blocked",
        f"{SRC}/waiting/loop_time.rs",
        "of(self.delayed, before.delayed)",
        "0",
        (f"{IO} lib loop_time",),
    ),
    Fault(
        "event_loops_tell_their_waits",
        "an event loop of asyncio says when it waits",
        "python/tricorn/workers/event_loop.py",
        "selector.select = clock.around(selector.select)",
        "pass",
        ("tests/integration/test_loop_time.py -k asgi",),
    ),
    Fault(
        "gevent_tells_its_waits",
        "gevent's hub says when it has waited",
        "python/tricorn/workers/ggevent.py",
        "after.start(clock.works)",
        "pass",
        ("tests/integration/test_loop_time.py -k gevent",),
    ),
    Fault(
        "loops_that_are_missed_work",
        "a loop that does not say when it waits is accounted for while it is missed",
        f"{SRC}/waiting/hub_watch.rs",
        "self.absence.goes_on(hub.thread(), waiting.board, now);",
        "",
        ("tests/integration/test_loop_time.py -k show",),
    ),
)
