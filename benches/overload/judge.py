"""What became of the requests of an overload, and whether that is what was promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from tricorn_bench.load import Sample

from benches.one_queue.theory import quantile

#: The share of the capacity that has to be served, and within what the rest has to be refused, in seconds.
GOODPUT, REFUSED_WITHIN, RECOVERED_WITHIN = 0.95, 0.005, 1.0
BUCKET = 0.5
GAVE_UP = "timeout"


class Phases(NamedTuple):
    """Seconds of quiet, overload, quiet."""

    before: float
    overload: float
    after: float

    @property
    def begin(self) -> float:
        return self.before

    @property
    def end(self) -> float:
        return self.before + self.overload

    @property
    def over(self) -> float:
        return self.end + self.after


class Promised(NamedTuple):
    """Requests per second that can be served, and within how many seconds each that is admitted."""

    capacity: float
    latency: float


def judge(outcomes: Sequence[Sample], phases: Phases, promised: Promised) -> dict[str, Any]:
    during = [outcome for outcome in outcomes if phases.begin <= outcome.due < phases.end]
    # Goodput is counted when it comes out, whenever it was due.
    good = sum(outcome.ended == 200 and phases.begin <= outcome.done < phases.end for outcome in outcomes)
    admitted = sorted(outcome.latency for outcome in during if outcome.ended == 200)
    refused = sorted(outcome.latency for outcome in during if outcome.ended == 503)
    late = sorted(outcome.late for outcome in during if not outcome.held)
    recovered = recovery(outcomes, phases)
    ended = Counter(one.ended for one in during)
    kept = {
        f"goodput at least {GOODPUT:.0%} of the capacity": good / phases.overload / promised.capacity >= GOODPUT,
        "admitted within the queue's timeout and a service time (p99)": bool(admitted)
        and quantile(admitted, 0.99) < promised.latency,
        f"refused within {REFUSED_WITHIN * 1e3:g} ms (p99)": bool(refused)
        and quantile(refused, 0.99) <= REFUSED_WITHIN,
        f"recovered within {RECOVERED_WITHIN:g} s": recovered is not None and recovered <= RECOVERED_WITHIN,
        "every request was served or refused": set(ended) <= {200, 503},
    }
    return {
        "served/s": good / phases.overload,
        "of capacity": good / phases.overload / promised.capacity,
        **{f"admitted {key}": value for key, value in spread(admitted).items()},
        **{f"503 {key}": value for key, value in spread(refused).items()},
        "served": ended[200],
        "refused": ended[503],
        "gave up": ended[GAVE_UP],
        "other": sum(count for status, count in ended.items() if status not in (200, 503, GAVE_UP)),
        "recovery s": recovered,
        "all clients busy": sum(outcome.held for outcome in outcomes),
        "sent late p99": quantile(late, 0.99) * 1e3 if late else 0.0,
        "not kept": "; ".join(name for name, holds in kept.items() if not holds) or "–",
        "curve": curve(outcomes, phases),
    }


def spread(ordered: Sequence[float]) -> dict[str, float]:
    shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: quantile(ordered, share) * 1e3 for name, share in shares.items()} if ordered else {}


def recovery(outcomes: Sequence[Sample], phases: Phases) -> float | None:
    """Seconds from the end of the overload after which every request is served as fast as before it began.

    As fast: no slower than the slowest before. None: not within what was measured.
    """
    before = [outcome.latency for outcome in outcomes if outcome.due < phases.begin and outcome.ended == 200]
    usual = max(before, default=0.0)
    after = [outcome for outcome in outcomes if outcome.due >= phases.end]
    bad = [outcome.due for outcome in after if outcome.ended != 200 or outcome.latency > usual]
    if not bad:
        return 0.0
    if not after or bad[-1] == after[-1].due:
        return None
    return min(outcome.due for outcome in after if outcome.due > bad[-1]) - phases.end


def curve(outcomes: Sequence[Sample], phases: Phases) -> list[dict[str, float | None]]:
    """Per half second: what came out well, and the p99 of those that were due then."""
    buckets = []
    for number in range(round(phases.over / BUCKET)):
        begin, end = number * BUCKET, (number + 1) * BUCKET
        due = [outcome for outcome in outcomes if begin <= outcome.due < end]
        good = sum(outcome.ended == 200 and begin <= outcome.done < end for outcome in outcomes)
        buckets.append(
            {
                "at": begin + BUCKET / 2,
                "good_per_second": good / BUCKET,
                "gave_up_per_second": sum(one.ended == GAVE_UP for one in due) / BUCKET,
                "admitted_p99_ms": spread(sorted(one.latency for one in due if one.ended == 200)).get("p99"),
                "refused_p99_ms": spread(sorted(one.latency for one in due if one.ended == 503)).get("p99"),
            }
        )
    return buckets
