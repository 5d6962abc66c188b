"""Faults of the load generator: figures that would be wrong without anyone seeing it."""

from __future__ import annotations

from tests.mutants.fault import Fault

CRATE = "crates/tricorn-load"
DRIVER = f"{CRATE}/src/driver.rs"
HTTP, TLS = f"{CRATE} http", f"{CRATE} tls"

LOAD = (
    Fault(
        "latency_counts_from_due",
        "in the open model latency counts from when a request was due, not from when it was sent",
        DRIVER,
        "now - task.due",
        "now - task.begun",
        (f"{HTTP} an_open_model_sees_a_stall",),
    ),
    Fault(
        "the_end_waits_for_answers",
        "requests under way when the time is over are waited for, and counted",
        DRIVER,
        "self.left.under_way == 0 && self.held() == 0",
        "true",
        (f"{HTTP} what_is_under_way",),
    ),
    Fault(
        "held_requests_are_sent",
        "a request that finds no free connection is held, and sent when one is free",
        DRIVER,
        "open.hold(origin, arrival);",
        "",
        (f"{HTTP} an_open_model_sees_a_stall",),
    ),
    Fault(
        "stale_connections_cost_nothing",
        "a kept connection that the server closed costs no request that may be repeated",
        DRIVER,
        "self.pool.prepared[task.request as usize].is_idempotent",
        "false",
        (f"{HTTP} a_kept_connection",),
    ),
    Fault(
        "warm_up_is_not_counted",
        "answers to requests of the warm-up are not counted",
        DRIVER,
        "warmup",
        "0",
        (f"{HTTP} what_comes_before",),
        at="span: Span {\n                counted: ",
    ),
    Fault(
        "samples_say_what_was_held",
        "a sample tells that its request was due while all connections were busy",
        f"{CRATE}/src/open.rs",
        "Arrival { is_held: true, ..arrival }",
        "arrival",
        (f"{HTTP} a_sample_tells_that",),
    ),
    Fault(
        "all_are_opened_first",
        "the first requests open all connections, though some rest",
        f"{CRATE}/src/open.rs",
        "self.opens_all && count < self.most",
        "false",
        (f"{HTTP} first_requests_open_all",),
    ),
    Fault(
        "tickets_are_kept",
        "a connection anew resumes with a ticket of the server",
        f"{CRATE}/src/tls/tickets.rs",
        "kept.tickets.push_back(value);",
        "",
        (f"{TLS} a_connection_for_each_request_resumes",),
    ),
    Fault(
        "tls_tells_the_end",
        "an answer that ends with the connection is complete when TLS says so",
        f"{CRATE}/src/client.rs",
        "if matches!(&self.state, State::Waiting(wire) if wire.is_over())",
        "if false",
        (f"{TLS} an_end_that_tls_tells",),
    ),
    Fault(
        "messages_of_tls_end_no_connection",
        "what TLS sends for itself leaves a kept connection as it is",
        f"{CRATE}/src/client.rs",
        "!wire.stays(line.buffer)",
        "wire.owes() || true",
        (f"{TLS} what_tls_says_between_requests",),
    ),
    Fault(
        "names_are_checked",
        "a certificate that was named itself is taken for its own names only",
        f"{CRATE}/src/tls/verifier.rs",
        "verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;",
        "let _ = name;",
        (f"{TLS} whom_it_trusts",),
    ),
)
