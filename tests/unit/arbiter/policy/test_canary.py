"""The verdict on canaries: what each rule says, and by simulation how often all of them together are wrong."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from tricorn.arbiter.policy.canary import (
    Look,
    Plan,
    Sample,
    is_shorter,
    judge,
    mann_whitney,
    two_proportions,
)
from tricorn.arbiter.policy.commands import Commit, Rollback, Spawn
from tricorn.arbiter.policy.events import CanarySeen, ChildExited, Told
from tricorn.metrics.scoreboard import histogram_edges
from tricorn.workers.messages import Ready

from tests.unit.arbiter.policy.support import quiet, running

EDGES = tuple(histogram_edges()[0])
BUCKETS = range(len(EDGES) - 1)
PLAN = Plan(1, 60.0, 500)


def sample(requests: int = 1000, failed: int = 0, *, seconds: Sequence[float] = (), **others: int) -> Sample:
    found = Counter(bucket_of(each) for each in seconds)
    return Sample(requests=requests, failed=failed, times=tuple(found[each] for each in BUCKETS), edges=EDGES, **others)


def bucket_of(seconds: float) -> int:
    return max(index for index in BUCKETS if EDGES[index] <= seconds * 1e9)


class TestSizes:
    @pytest.mark.parametrize(
        ("size", "workers", "canaries"),
        [(0, 4, 0), (1, 4, 1), (9, 4, 4), ("10%", 4, 1), ("10%", 11, 2), ("50%", 4, 2), ("100%", 4, 4), ("10%", 0, 0)],
    )
    def test_a_share_is_rounded_up_and_there_are_no_more_than_workers(
        self, size: int | str, workers: int, canaries: int
    ) -> None:
        assert Plan(size, 60.0, 500).of(workers) == canaries


class TestPercentiles:
    def test_they_lie_within_the_bucket_as_if_it_were_evenly_filled(self) -> None:
        it = sample(seconds=[0.0101] * 50 + [0.0401] * 50)
        assert it.percentile(0.25) == pytest.approx(0.01125)
        assert it.percentile(0.75) == pytest.approx(0.045)
        assert it.percentile(0.0) == pytest.approx(0.01)
        assert it.percentile(1.0) == pytest.approx(0.05)

    def test_without_any_times_there_are_none(self) -> None:
        assert Sample().percentile(0.5) == sample().percentile(0.95) == 0.0


class TestStatistics:
    def test_two_shares_by_a_textbook(self) -> None:
        # 45 of 120 and 30 of 150: pooled 0.2778, standard error 0.05486
        assert two_proportions(45, 120, 30, 150) == pytest.approx(3.190, abs=0.001)
        assert two_proportions(30, 150, 45, 120) == pytest.approx(-3.190, abs=0.001)
        assert two_proportions(0, 10, 0, 10) == two_proportions(5, 5, 5, 5) == 0.0

    def test_ranks_are_compared_with_the_correction_for_ties(self) -> None:
        # 2 2 3 3 3 against 1 1 2 2 3: U = 19.5, its mean 12.5, its variance 25 / 12 · (11 - (6 + 60 + 60) / 90) = 20
        assert mann_whitney([0, 2, 3], [2, 2, 1]) == pytest.approx(7 / math.sqrt(20))
        assert mann_whitney([5, 0], [5, 0]) == 0.0


def both(old: Sample, new: Sample, timed: float = 60.0) -> Look:
    return Look(old, new, timed)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("new", "old", "is_bad"),
        [
            ((500, 4), (2000, 0), False),  # too few to mean anything
            ((500, 10), (2000, 0), True),
            ((500, 30), (2000, 100), False),  # the difference is a point, and may be chance
            ((500, 60), (2000, 100), True),
            ((50_000, 900), (200_000, 2000), False),  # no chance, but less than a point
            ((30, 14), (5, 0), False),  # nothing to compare with, and not most of them
            ((30, 15), (0, 0), True),
            ((500, 500), (2000, 2000), False),  # both fail: whatever is wrong is no matter of the code
        ],
    )
    def test_errors(self, new: tuple[int, int], old: tuple[int, int], is_bad: bool) -> None:
        assert (judge(both(sample(*old), sample(*new)), PLAN) is not None) is is_bad

    def test_the_reason_has_the_numbers(self) -> None:
        assert judge(both(sample(2000, 1), sample(500, 10)), PLAN) == (
            "10 of 500 requests of the new workers failed (2.0%), and 1 of 2000 of the old ones (0.1%)"
        )

    @pytest.mark.parametrize("base", [0.001, 0.01, 2.0])
    def test_a_median_that_is_longer_by_more_than_a_third_whatever_the_time_is(self, base: float) -> None:
        spread = [0.7 + 0.006 * each for each in range(100)] * 5
        old = [base * each for each in spread]
        assert judge(both(sample(seconds=old), sample(seconds=[each * 1.15 for each in old])), PLAN) is None
        why = judge(both(sample(seconds=old), sample(seconds=[each * 1.6 for each in old])), PLAN)
        assert why is not None
        assert why.startswith("the new workers are slower: median ")

    def test_a_constant_time_that_crosses_the_edge_of_a_bucket_is_no_slower_one(self) -> None:
        for edge in EDGES[2:-2]:
            old, new = [edge / 1e9 * 0.9999] * 500, [edge / 1e9 * 1.0001] * 500
            assert judge(both(sample(seconds=old), sample(seconds=new)), PLAN) is None

    def test_some_microseconds_are_no_matter_of_the_code(self) -> None:
        assert judge(both(sample(seconds=[0.000_01] * 500), sample(seconds=[0.000_1] * 500)), PLAN) is None

    def test_a_few_requests_that_take_much_longer(self) -> None:
        old = [0.01] * 970 + [0.02] * 30
        why = judge(both(sample(seconds=old), sample(seconds=[0.01] * 880 + [0.5] * 120)), PLAN)
        assert why is not None
        assert why.startswith("the new workers are slower: 95th percentile ")

    def test_a_few_requests_say_nothing_about_times(self) -> None:
        old, new = [0.01] * 1000, [0.1] * 199
        assert judge(both(sample(seconds=old), sample(seconds=new)), PLAN) is None
        assert judge(both(sample(seconds=old), sample(seconds=new)), Plan(1, 5.0, 100)) is not None

    def test_slow_seconds_of_a_busy_machine_are_no_matter_of_the_code(self) -> None:
        old, new = [0.01] * 1000, [0.1] * 1000
        assert judge(both(sample(seconds=old), sample(seconds=new), 14.9), PLAN) is None
        assert judge(both(sample(seconds=old), sample(seconds=new), 15.0), PLAN) is not None

    def test_responses_half_as_long_are_noticed_unless_others_send_them(self) -> None:
        old, new = sample(1000, bytes_out=10_000_000), sample(1000, bytes_out=4_900_000)
        assert is_shorter(Look(old, new))
        assert not is_shorter(Look(old, sample(1000, bytes_out=5_100_000)))
        assert not is_shorter(Look(old, sample(1000, bytes_out=4_900_000, lent=1)))
        assert not is_shorter(Look(old, sample(100, bytes_out=4_900)))


# The simulation: reloads in virtual time, through `decide`.

WORKERS = 4
RATE = 20.0
"""Requests per second and worker, of the old ones and of the canary: 1,200 requests to the canary in a minute."""
SEEDS = 1000


class Code:
    """How a generation serves: log-normal times, a share of failures, and a number of requests after which it dies.

    A median of 0 is for what times have nothing to do with: drawing them takes most of the time.
    """

    def __init__(self, median: float = 0.0, sigma: float = 1.0, failing: float = 0.0, dies: float = math.inf) -> None:
        logs = [math.log(edge / 1e9 / median) / sigma / math.sqrt(2) for edge in EDGES[1:-1] if median]
        self.shares = [*((1 + math.erf(each)) / 2 for each in logs), 1.0] if median else []
        self.failing, self.dies = failing, dies


class Generation:
    def __init__(self, code: Code, workers: int, dice: random.Random) -> None:
        self.code, self.workers, self.dice = code, workers, dice
        self.requests = self.failed = 0
        self.times = [0] * len(BUCKETS)

    def serve(self, *, timed: bool) -> None:
        """Serves for a second."""
        mean = RATE * self.workers
        count = max(0, round(self.dice.gauss(mean, math.sqrt(mean))))
        self.requests += count
        self.failed += self.failures(count)
        if timed and self.code.shares:
            for bucket in self.dice.choices(BUCKETS, cum_weights=self.code.shares, k=count):
                self.times[bucket] += 1

    def failures(self, count: int) -> int:
        """Draws how many of so many requests fail, by the gaps between them."""
        if not self.code.failing:
            return 0
        failed, place = -1, -1
        while place < count:
            failed += 1
            place += 1 + int(math.log(1 - self.dice.random()) / math.log(1 - self.code.failing))
        return failed

    def sample(self) -> Sample:
        return Sample(self.workers, self.requests, self.failed, times=tuple(self.times), edges=EDGES)


def reload(seed: int, old: Code, new: Code) -> str | None:
    """Returns why the reload was rolled back; None: all new workers serve."""
    dice = random.Random(seed)
    it = running(WORKERS)
    begun = it.hang_up(policy=quiet(canary=1))
    (canary,) = [each.nr for each in begun if isinstance(each, Spawn)]
    it.feel(Told(canary, Ready()))
    generations = Generation(old, WORKERS, dice), Generation(new, 1, dice)
    for second in range(1, 61):
        it.now += 1
        for each in generations:
            each.serve(timed=second > 10)
        if generations[1].requests >= new.dies:
            done = it.feel(ChildExited(canary, -11))
        else:
            done = it.feel(CanarySeen(2, Look(*(each.sample() for each in generations), timed=second - 10.0)))
        for each in done:
            if isinstance(each, Rollback):
                assert it.state.generation == 1
                return each.reason
    assert it.state.watch is None, "the time is over"
    for worker in list(it.state.workers.values()):
        if worker.generation == 2 and worker.nr != canary:
            done = it.feel(Told(worker.nr, Ready()))
    assert Commit(2) in done
    return None


def rolled_back(old: Code, new: Code) -> float:
    return sum(reload(seed, old, new) is not None for seed in range(SEEDS)) / SEEDS


BAD = {
    "fails in 2 %": (Code(), Code(failing=0.02)),
    "dies after 50 requests": (Code(), Code(dies=50)),
    **{
        f"1.6 times slower, median {median * 1000:g} ms, sigma {sigma:g}": (
            Code(median, sigma),
            Code(1.6 * median, sigma),
        )
        for median, sigma in [(0.001, 0.3), (0.01, 1.0), (0.1, 1.5), (1.0, 2.0)]
    },
}
EQUAL = {
    "1 % of errors": (Code(0.05, failing=0.01), Code(0.05, failing=0.01)),
    "heavy tails, 3 % of errors": (Code(0.05, 2.0, failing=0.03), Code(0.05, 2.0, failing=0.03)),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_code_is_rolled_back(kind: str) -> None:
    rate = rolled_back(*BAD[kind])
    print(f"{kind}: {rate:.1%} rolled back")
    assert rate >= 0.99


@pytest.mark.parametrize("kind", EQUAL)
def test_equal_code_is_not_rolled_back(kind: str) -> None:
    rate = rolled_back(*EQUAL[kind])
    print(f"{kind}: {rate:.1%} rolled back")
    assert rate <= 0.005
