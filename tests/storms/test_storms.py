"""A few storms with fixed seeds; `make storms` makes others."""

from __future__ import annotations

import pytest

from tests.storms.storm import plan, rage

pytestmark = pytest.mark.beyond_reference("there a request is lost where one is kept here")

SEEDS = range(7)
"""One for each worker class."""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: str(plan(seed)).replace(" ", "_"))
def test_the_books_balance_after(seed: int) -> None:
    rage(plan(seed))
