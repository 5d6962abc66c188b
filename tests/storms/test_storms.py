"""A few storms with fixed seeds; `make storms` makes others."""

from __future__ import annotations

import pytest

from tests.harness.transports import NAMES
from tests.storms.storm import CLASSES, plan, rage

pytestmark = pytest.mark.beyond_reference("there a request is lost where one is kept here")

SEEDS = range(len(CLASSES) * len(NAMES))
"""One for each worker class and transport."""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: str(plan(seed)).replace(" ", "_"))
def test_the_books_balance_after(seed: int) -> None:
    rage(plan(seed))
