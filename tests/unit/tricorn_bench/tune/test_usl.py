from __future__ import annotations

import pytest
from tricorn_bench.tune import usl
from tricorn_bench.tune.usl import Fit


@pytest.mark.parametrize("law", [Fit(100.0, 0.0, 0.0), Fit(100.0, 0.05, 0.0), Fit(250.0, 0.1, 0.002)])
def test_points_of_the_law_give_the_law(law: Fit) -> None:
    found = usl.fit([(workers, law.at(workers)) for workers in (1, 2, 4, 8, 16)])
    assert found is not None
    assert vars(found) == pytest.approx(vars(law), abs=1e-6)


def test_two_numbers_of_workers_are_too_few() -> None:
    assert usl.fit([(1, 100.0), (2, 190.0), (2, 195.0)]) is None


def test_noise_does_not_make_coefficients_negative() -> None:
    found = usl.fit([(1, 100.0), (2, 205.0), (4, 399.0), (8, 812.0)])
    assert found is not None
    assert found.contention >= 0
    assert found.coherence >= 0
    assert found.at(8) == pytest.approx(812, rel=0.05)
