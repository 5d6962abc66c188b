"""Faults of the profiles of slow requests: which requests are looked at, and what is kept and told of them."""

from __future__ import annotations

from tests.mutants.fault import Fault

IO = "crates/tricorn-io"
DIAGNOSIS = "crates/tricorn-diagnosis"
SAMPLING = f"{DIAGNOSIS}/src/sampling"
PLAN = f"{SAMPLING}/plan.rs"
ROUTES = f"{SAMPLING}/routes.rs"
PROFILE = f"{SAMPLING}/profile.rs"
SAMPLER = f"{IO}/src/monitor/sampler"
DOCTOR = "crates/tricorn-doctor"
INQUIRIES = "python/tricorn/arbiter/control/inquiries.py"
ASKED = "tests/unit/arbiter/control/test_control_inquiries.py"
IN_CLASSES = "tests/integration/test_slow_requests.py"
PROFILED = "tests/integration/test_profile.py"
ANALYSIS = "packages/tricorn-tools/tricorn_tools/doctor/slow/analysis.py"
ANALYSED = "tests/unit/tricorn_tools/doctor/slow/test_analysis.py"

SLOW_REQUESTS = (
    Fault(
        "looked_at_too_early",
        "a request that is faster than profile_after is not looked at",
        PLAN,
        "age < self.after",
        "false",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "slow_counts_as_early",
        "a request that took longer than profile_after does not count among the usual ones",
        f"{IO}/src/waiting/sampling.rs",
        "clock::now().saturating_sub(started) >= self.after",
        "false",
        (f"{IO} lib sampling",),
    ),
    Fault(
        "early_ones_are_counted_seldom",
        "one of thirteen early requests is counted, and stands for thirteen",
        f"{IO}/src/waiting/sampling.rs",
        "board.get(Word::Requests).is_multiple_of(ONE_IN)",
        "true",
        (f"{IO} lib sampling",),
    ),
    Fault(
        "place_of_the_next_request",
        "a request is over when another one has its place",
        PLAN,
        "under_way.get(slot) != Some(&each.started)",
        "!under_way.contains_key(slot)",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "frames_of_the_next_request",
        "frames that were found of another request at the same place are not taken",
        PLAN,
        "each.started == started",
        "true",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "samples_have_an_end",
        "a request is looked at 64 times at most",
        PLAN,
        "each.count < MOST_SAMPLES",
        "true",
        (f"{DIAGNOSIS} lib sampling",),
        at="let due = self.followed.iter().filter(|(_, each)| ",
    ),
    Fault(
        "older_is_looked_at_less",
        "the samples of a request suffice for its whole length",
        PLAN,
        "STEP.max(age / 8)",
        "STEP",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "followed_have_a_bound",
        "64 requests are followed at a time, and the others are counted",
        PLAN,
        "self.followed.len() >= MOST_FOLLOWED",
        "false",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "looks_have_a_bound",
        "frames of 16 requests are wanted at once, and no more",
        PLAN,
        "due.into_iter().take(MOST_AT_ONCE)",
        "due.into_iter().take(usize::MAX)",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "late_looks_are_told",
        "a sample that was taken late is counted as such",
        PLAN,
        "now.saturating_sub(*next) > 2 * STEP",
        "false",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "routes_have_a_bound",
        "a worker keeps 64 routes, and one for the others",
        ROUTES,
        "self.routes.len() >= MOST_ROUTES",
        "false",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "stacks_have_a_bound",
        "a route keeps 100 stacks, and the time of the others in sum",
        ROUTES,
        "route.stacks.len() >= MOST_STACKS",
        "false",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "stacks_without_a_route",
        "stacks for which no route has room do not pile up",
        ROUTES,
        "routes.known.len() >= MOST_KNOWN",
        "false",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "frames_have_a_bound",
        "a stack keeps its 40 innermost frames",
        ROUTES,
        "frames.truncate(MOST_FRAMES)",
        "frames.truncate(usize::MAX)",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "report_has_a_bound",
        "a report fits into its area of the file",
        ROUTES,
        "text.len() <= MOST_BYTES",
        "true",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "known_fades",
        "what is older than ten minutes counts half",
        ROUTES,
        "now.saturating_sub(self.halved) < HALF",
        "true",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "slowest_per_cent",
        "slow is the slowest per cent of a route, and not its slowest bucket",
        ANALYSIS,
        "wanted = SLOWEST * total",
        "wanted = 0",
        (f"{ANALYSED} -k per_cent",),
    ),
    Fault(
        "usual_lines_are_no_reason",
        "a line at which usual requests are for as long is not told",
        ANALYSIS,
        "if line.more > least",
        "if line.slow > least",
        (f"{ANALYSED} -k usual",),
    ),
    Fault(
        "rubbish_in_a_profile",
        "what a worker writes into its report cannot harm the reader",
        ANALYSIS,
        "except (LookupError, TypeError, ValueError, AttributeError):",
        "except LookupError:",
        (f"{ANALYSED} -k rubbish",),
    ),
    Fault(
        "order_that_is_not_whole",
        "an order of a profile counts when it is whole",
        f"{DIAGNOSIS}/src/report_file.rs",
        "Some(number) == word(4)",
        "true",
        (f"{DIAGNOSIS} lib report_file",),
    ),
    Fault(
        "frames_of_the_loop",
        "frames of the event loop are none of the request that it runs",
        f"{SAMPLER}/reader.rs",
        "frames.truncate(end);",
        "let _ = end;",
        (f"{IO} lib sampler",),
    ),
    Fault(
        "held_up_by_another",
        "requests that wait for a hub which does not come are told to be held up by what it is at",
        f"{SAMPLER}/mod.rs",
        "hub.samples.is_asked(Asker::Sampler)",
        "false",
        (f"{IN_CLASSES} -k asgi",),
        at="self.plan.sampled(now, call, frames.clone());",
    ),
    Fault(
        "value_of_another_variable",
        "a call is known by the value of its variable, and of no other",
        f"{DOCTOR}/src/python/contexts.rs",
        "this == key",
        "key != 0",
        (f"{DOCTOR} lib contexts",),
    ),
    Fault(
        "request_of_a_hubs_thread",
        "what a hub's thread computes belongs to the route of the request that it is at",
        f"{SAMPLER}/reader.rs",
        "hub.at.call(board, |marks| doctor.identities(marks))",
        "hub.at.call(board, |_| Vec::new())",
        (f"{PROFILED} -k gevent",),
    ),
    Fault(
        "late_looks_of_a_profile",
        "looks of a profile that did not come in time are counted",
        PROFILE,
        "(elapsed / interval.max(1)).saturating_sub(1)",
        "0 * elapsed * interval",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "stacks_of_a_profile_have_a_bound",
        "a profile keeps 4,096 stacks, and the time of the others in sum",
        PROFILE,
        "self.stacks.len() >= MOST_STACKS",
        "false",
        (f"{DIAGNOSIS} lib sampling",),
    ),
    Fault(
        "one_profile_at_a_time",
        "another profile is refused while one is taken",
        INQUIRIES,
        "if isinstance(other.inquiry, Profile):",
        "if False:",
        (f"{ASKED} -k one_at_a_time",),
    ),
    Fault(
        "profile_of_a_client_that_left",
        "a profile ends with its client",
        INQUIRIES,
        "handle.order_profile(0.0, 0, PROFILES)",
        "pass",
        (f"{ASKED} -k client_that_leaves",),
    ),
    Fault(
        "report_of_another_order",
        "a report counts if it is of the last order",
        "crates/tricorn-diagnosis/src/report_file.rs",
        "(number.is_some() && word(2) != number)",
        "false",
        ("crates/tricorn-diagnosis lib report_file",),
    ),
    Fault(
        "recursion_counts_once",
        "a function that calls itself has its time once",
        "packages/tricorn-tools/tricorn_tools/doctor/profile/analysis.py",
        "for key in {(frame.file, frame.function) for frame in stack}:",
        "for key in [(frame.file, frame.function) for frame in stack]:",
        ("tests/unit/tricorn_tools/doctor/profile/test_analysis.py -k function_has_time",),
    ),
)
