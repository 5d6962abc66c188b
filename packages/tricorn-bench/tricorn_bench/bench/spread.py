"""Is a difference more than noise? The bootstrap over rounds.

A figure is read in every round. The rounds of two configurations that were measured in turns belong together: what
disturbed the machine in the third round disturbed both. The ratio of two figures is the geometric mean of its rounds'
ratios, a mean of logarithms. Of a mean the ideal bootstrap, all n to the n draws of rounds with replacement, has a
closed form, so that nothing is drawn (Efron and Tibshirani, An Introduction to the Bootstrap, 1993). Few rounds make
its plain interval too narrow: Student's quantile and the factor sqrt(n / (n - 1)) widen it (Hesterberg, What Teachers
Should Know About the Bootstrap, 2015), which makes it the interval of the paired t-test.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from tricorn.record import Record

LEAST_EFFECT = 0.005
"""Half a percent: less is noise, however often it repeats."""

# Student's t, the quantile 0.975, for 1, 2, 3 … degrees of freedom.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
_T_BEYOND = 2.09
"""Quantile for 16 to 30 degrees of freedom, within 2 %; it tends to 1.96."""


class Ratio(Record):
    """Ratio of two means with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    rounds: int

    @property
    def noise(self) -> bool:
        """Whether the rounds do not tell the two apart. One round tells nothing."""
        return self.rounds < 2 or self.low <= 1.0 <= self.high or abs(self.value - 1.0) < LEAST_EFFECT


def ratio(base: Sequence[float], other: Sequence[float], *, paired: bool) -> Ratio | None:
    """`other` by `base`. None where a figure is zero, or has no rounds: there is no ratio to it.

    `paired`: both were measured in turns, so that the rounds of a number belong together.
    """
    if not base or not other or min(*base, *other) <= 0:
        return None
    bases, others = [math.log(one) for one in base], [math.log(one) for one in other]
    if paired and len(bases) == len(others):
        differences = [high - low for low, high in zip(bases, others, strict=True)]
        centre, error, count = statistics.fmean(differences), standard_error(differences), len(differences)
    else:
        centre = statistics.fmean(others) - statistics.fmean(bases)
        error = math.hypot(standard_error(bases), standard_error(others))
        count = min(len(bases), len(others))
    reach = error * student(count - 1) if count > 1 else 0.0
    return Ratio(math.exp(centre), math.exp(centre - reach), math.exp(centre + reach), count)


def standard_error(values: Sequence[float]) -> float:
    """Returns the standard error of the mean by the ideal bootstrap, widened for few values; 0 for one."""
    count = len(values)
    return statistics.pstdev(values) / math.sqrt(count) * math.sqrt(count / (count - 1)) if count > 1 else 0.0


def student(freedom: int) -> float:
    return _T[freedom - 1] if freedom <= len(_T) else _T_BEYOND
