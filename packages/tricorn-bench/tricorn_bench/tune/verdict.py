"""Judges what was measured: which configuration to use, what it gains, and when there is nothing to choose."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from tricorn.record import Record
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.result import Cell, Round
from tricorn_bench.bench.spread import Ratio, ratio
from tricorn_bench.tune.calibrate import cpu_of, memory_of, rate_of
from tricorn_bench.tune.model import Costs, Limits, Prediction

SAME = 0.05
"""Fraction by which rates may differ and count as equal."""
IDLE = 0.5
"""Fraction of the processors below which they do not limit the application."""
FAILED = 0.01
"""Fraction of requests that may fail."""
LOADS = (0.5, 0.7, 0.9)
"""Parts of a configuration's own limit at which its latency is measured."""


class Target(Record):
    """A limit that latency should keep: `p99 < 200ms`."""

    quantile: str
    seconds: float

    @classmethod
    def parse(cls, text: str) -> Target:
        """Raises BenchError."""
        words = text.replace("<", " < ").split()
        units = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
        match words:
            case [("p50" | "p90" | "p95" | "p99") as quantile, "<", value]:
                number = value.rstrip("mus")
                try:
                    return cls(quantile, float(number) * units[value[len(number) :]])
                except (KeyError, ValueError):
                    pass
        raise BenchError(f"Invalid target {text!r}: expected, for example, 'p99 < 200ms' or 'p95 < 1.5s'.")

    def __str__(self) -> str:
        return f"{self.quantile} < {seconds(self.seconds)}"


class Finalist(Record):
    """A configuration that was measured under full load and at parts of it."""

    name: str
    prediction: Prediction | None
    """None for a configuration that the model does not know."""
    rounds: Mapping[float, Sequence[Round]]
    """Rounds by load: 1.0 is all that it takes, others are parts of that."""

    @property
    def rates(self) -> list[float]:
        return [rate_of(one) for one in self.rounds[1.0]]

    @property
    def rate(self) -> float:
        return statistics.fmean(self.rates)

    @property
    def memory(self) -> int:
        return max(memory_of(one) for rounds in self.rounds.values() for one in rounds)

    @property
    def cpu(self) -> float:
        """CPU seconds of a request."""
        return statistics.fmean(cpu_of(one) for one in self.rounds[1.0])

    @property
    def failed(self) -> float:
        """Fraction of the requests that got no answer, or one with status 500 or above."""
        loads = [one["load"] for rounds in self.rounds.values() for one in rounds]
        sent = sum(load["answered"] + sum(load["errors"].values()) for load in loads)
        bad = sum(sum(load["errors"].values()) for load in loads)
        bad += sum(count for load in loads for status, count in load["statuses"].items() if status[:1] == "5")
        return bad / sent if sent else 1.0

    def latency(self, share: float, quantile: str) -> float | None:
        """Median over the rounds at a part of the full load, in seconds."""
        rounds = self.rounds.get(share)
        return statistics.median(one["load"]["latency"][quantile] for one in rounds) if rounds else None

    def rate_within(self, target: Target | None) -> float:
        """Returns the highest measured rate at which the target is met; 0 if there is none."""
        if target is None:
            return self.rate
        met = [
            statistics.fmean(map(rate_of, rounds))
            for share, rounds in self.rounds.items()
            if (found := self.latency(share, target.quantile)) is not None and found < target.seconds
        ]
        return max(met, default=0.0)


class Verdict(Record):
    best: Finalist
    today: Finalist | None
    gain: Ratio | None
    """Ratio of the rates, best to today. None without two of them."""
    ranked: Sequence[Finalist]
    refusal: str = ""
    """The reason why no configuration is recommended."""


def judge(finalists: Sequence[Finalist], today: str, target: Target | None, limits: Limits) -> Verdict:
    """Raises BenchError if requests fail, or if all configurations took more memory than they may."""
    whole = [one for one in finalists if one.failed <= FAILED]
    if not whole:
        worst = min(finalists, key=lambda one: one.failed)
        raise BenchError(
            f"{worst.failed:.0%} of the requests to {worst.name} failed under load, and other configurations were no "
            "better. Check the application's log, or request another path (--path)."
        )
    ranked = sorted(whole, key=lambda one: (-one.rate_within(target), one.memory))
    fitting = [one for one in ranked if limits.memory is None or one.memory <= limits.memory]
    if not fitting:
        least = min(one.memory for one in ranked) / 2**20
        raise BenchError(f"All measured configurations exceed the memory limit: they use at least {least:,.0f} MiB.")
    highest = fitting[0].rate_within(target)
    equal = [one for one in fitting if one.rate_within(target) >= (1 - SAME) * highest]
    best = min(equal, key=lambda one: one.memory)
    current = next((one for one in finalists if one.name == today), None)
    gain = ratio(current.rates, best.rates, paired=True) if current and current is not best else None
    return Verdict(best, current, gain, ranked, _refusal(ranked, best, target, limits.processors))


def _refusal(ranked: Sequence[Finalist], best: Finalist, target: Target | None, processors: float) -> str:
    if target is not None and not best.rate_within(target):
        found = best.latency(LOADS[0], target.quantile)
        if found is None:
            return (
                f"No configuration meets {target}, and {best.name} sent no responses at {LOADS[0]:.0%} of its capacity."
            )
        return (
            f"No configuration meets {target}: the best one, {best.name}, has {target.quantile} = {seconds(found)} at "
            f"{LOADS[0]:.0%} of its capacity. Make the application faster, or raise the target."
        )
    rates = [one.rate for one in ranked]
    differ = max(rates) / min(rates) - 1
    if len(ranked) > 2 and differ < 2 * SAME and best.rate * best.cpu < IDLE * processors:
        return (
            f"The configuration makes no difference: all measured ones serve {min(rates):,.0f} to {max(rates):,.0f} "
            f"requests/s with CPUs {best.rate * best.cpu / processors:.0%} busy. Requests wait for something that all "
            "workers share, such as a database or another service."
        )
    return ""


def check_alone(costs: Mapping[str, Costs], target: Target | None) -> None:
    """Raises BenchError if a request by itself takes longer than the target."""
    fastest = min(costs.values(), key=lambda one: one.alone)
    if target is not None and fastest.alone > target.seconds:
        raise BenchError(
            f"{target} cannot be met: a single request takes {seconds(fastest.alone)} without any other load, of which "
            f"{seconds(min(fastest.cpu, fastest.alone))} on CPU and the rest waiting."
        )


def seconds(value: float) -> str:
    """Formats a duration with three digits: `1.25 s`, `310 ms`, `42.1 µs`."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value * 1e6:.2g} µs"


def predicted_error(one: Finalist) -> float | None:
    """Relative error of the prediction, beside what was measured."""
    return one.prediction.rate / one.rate - 1 if one.prediction is not None else None


def cells_to_rounds(cells: Sequence[Cell], name: str) -> dict[float, Sequence[Round]]:
    return {float(cell["at"] or 0): cell["rounds"] for cell in cells if cell["configuration"] == name}
