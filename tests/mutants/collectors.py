"""Faults of what is sent to syslog and statsd."""

from __future__ import annotations

from tests.mutants.fault import Fault

FIGURES = "crates/tricorn-figures"
SRC = f"{FIGURES}/src"
SENDS = "tests/integration/test_collectors.py"

COLLECTORS = (
    Fault(
        "metrics_are_packed",
        "metrics share a datagram as long as they fit",
        f"{SRC}/collectors/batch.rs",
        "joined <= most",
        "false",
        (f"{FIGURES} lib batch",),
    ),
    Fault(
        "losses_of_collectors",
        "what a full socket does not take is counted",
        f"{SRC}/collectors/relay.rs",
        "lost.fetch_add(self.batch.messages_from(self.piece), Relaxed);",
        "",
        (f"{FIGURES} collectors",),
    ),
    Fault(
        "syslog_keeps",
        "lines that syslog does not take now are sent later",
        f"{SRC}/collectors/relay.rs",
        "self.policy.keeps",
        "false",
        (f"{FIGURES} collectors", f"{SENDS} -k late"),
    ),
    Fault(
        "whole_again",
        "a new connection begins with a whole message",
        f"{SRC}/collectors/socket.rs",
        "*written = 0;",
        "",
        (f"{FIGURES} lib collectors::socket",),
    ),
    Fault(
        "streams_follow",
        "a stream is opened anew where its name leads by then",
        f"{SRC}/collectors/socket.rs",
        "self.address = Address::Tcp(told);",
        "let _ = told;",
        (f"{FIGURES} collectors",),
    ),
    Fault(
        "outlets_follow",
        "Python's streams of a worker go where the arbiter has learned that the name leads",
        f"{SRC}/collectors/socket.rs",
        "        self.tell(to);\n",
        "",
        ("tests/unit/log/test_outlet.py -k arbiter_has_learned",),
    ),
    Fault(
        "collector_backs_off",
        "a collector that is away is not tried for each message",
        f"{SRC}/collectors/socket.rs",
        "self.retry_at = now.saturating_add(self.delay);",
        "self.retry_at = now;",
        (f"{FIGURES} lib collectors::socket",),
    ),
    Fault(
        "a_fork_begins_anew",
        "a fork sends nothing that its parent keeps, and has streams of its own",
        "crates/tricorn-py/src/collector.rs",
        "self.relay.after_fork();",
        "",
        ("tests/unit/log/test_outlet.py -k fork_has",),
    ),
    Fault(
        "measured_once",
        "a request that the core measures is not measured by Python, too",
        "python/tricorn/log/access.py",
        "return Logger.access.__get__(logger) if is_native else logger.access",
        "return logger.access",
        ("tests/unit/log/test_statsd_and_syslog.py -k second_time",),
    ),
)
