"""Faults of the profiles of slow requests: which requests are looked at, and what is kept and told of them."""

from __future__ import annotations

from tests.mutants.fault import Fault

IO = "crates/tricorn-io"
TAILS = f"{IO}/src/waiting/tails"
PLAN = f"{TAILS}/plan.rs"
ROUTES = f"{TAILS}/routes.rs"
ANALYSIS = "python/tricorn/doctor/slow/analysis.py"
ANALYSED = "tests/unit/doctor/slow/test_analysis.py"

SLOW_REQUESTS = (
    Fault(
        "looked_at_too_early",
        "a request that is faster than profile_after is not looked at",
        PLAN,
        "age < self.after",
        "false",
        (f"{IO} lib tails",),
    ),
    Fault(
        "slow_counts_as_early",
        "a request that took longer than profile_after does not count among the usual ones",
        f"{TAILS}/mod.rs",
        "clock::now().saturating_sub(started) >= self.after",
        "false",
        (f"{IO} lib tails",),
    ),
    Fault(
        "early_ones_are_counted_seldom",
        "one of thirteen early requests is counted, and stands for thirteen",
        f"{TAILS}/mod.rs",
        "board.get(Word::Requests).is_multiple_of(ONE_IN)",
        "true",
        (f"{IO} lib tails",),
    ),
    Fault(
        "place_of_the_next_request",
        "a request is over when another one has its place",
        PLAN,
        "under_way.get(place) != Some(&each.started)",
        "!under_way.contains_key(place)",
        (f"{IO} lib tails",),
    ),
    Fault(
        "frames_of_the_next_request",
        "frames that were found of another request at the same place are not taken",
        PLAN,
        "each.started == started",
        "true",
        (f"{IO} lib tails",),
    ),
    Fault(
        "samples_have_an_end",
        "a request is looked at 64 times at most",
        PLAN,
        "each.count < MOST_SAMPLES",
        "true",
        (f"{IO} lib tails",),
        at="let due = self.followed.iter().filter(|(_, each)| ",
    ),
    Fault(
        "older_is_looked_at_less",
        "the samples of a request suffice for its whole length",
        PLAN,
        "STEP.max(age / 8)",
        "STEP",
        (f"{IO} lib tails",),
    ),
    Fault(
        "followed_have_a_bound",
        "64 requests are followed at a time, and the others are counted",
        PLAN,
        "self.followed.len() >= MOST_FOLLOWED",
        "false",
        (f"{IO} lib tails",),
    ),
    Fault(
        "looks_have_a_bound",
        "frames of 16 requests are wanted at once, and no more",
        PLAN,
        "due.into_iter().take(MOST_AT_ONCE)",
        "due.into_iter().take(usize::MAX)",
        (f"{IO} lib tails",),
    ),
    Fault(
        "late_looks_are_told",
        "a sample that was taken late is counted as such",
        PLAN,
        "now.saturating_sub(*next) > 2 * STEP",
        "false",
        (f"{IO} lib tails",),
    ),
    Fault(
        "routes_have_a_bound",
        "a worker keeps 64 routes, and one for the others",
        ROUTES,
        "self.routes.len() >= MOST_ROUTES",
        "false",
        (f"{IO} lib tails",),
    ),
    Fault(
        "stacks_have_a_bound",
        "a route keeps 100 stacks, and the time of the others in sum",
        ROUTES,
        "route.stacks.len() >= MOST_STACKS",
        "false",
        (f"{IO} lib tails",),
    ),
    Fault(
        "stacks_without_a_route",
        "stacks for which no route has room do not pile up",
        ROUTES,
        "routes.known.len() >= MOST_KNOWN",
        "false",
        (f"{IO} lib tails",),
    ),
    Fault(
        "frames_have_a_bound",
        "a stack keeps its 40 innermost frames",
        ROUTES,
        "frames.truncate(MOST_FRAMES)",
        "frames.truncate(usize::MAX)",
        (f"{IO} lib tails",),
    ),
    Fault(
        "report_has_a_bound",
        "a report fits into its area of the file",
        ROUTES,
        "text.len() <= MOST_BYTES",
        "true",
        (f"{IO} lib tails",),
    ),
    Fault(
        "known_fades",
        "what is older than ten minutes counts half",
        ROUTES,
        "now.saturating_sub(self.halved) < HALF",
        "true",
        (f"{IO} lib tails",),
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
)
