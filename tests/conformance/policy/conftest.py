"""What was provoked, for all rows."""

from __future__ import annotations

import pytest

from tests.conformance.policy.cases import Provoked
from tests.conformance.policy.rows import ROWS
from tests.conformance.policy.stage import SUBJECTS
from tests.conftest import Pool


@pytest.fixture(scope="session")
def provoked(pool: Pool) -> Provoked:
    wanted = {subject: sorted({row.case for row in ROWS if subject in row.on}) for subject in SUBJECTS}
    return Provoked(pool, wanted)
