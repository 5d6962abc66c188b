"""Names of files and rooms in the lists of `tests/conftest.py`: one that is renamed would lose its place in silence."""

from __future__ import annotations

from tests import conftest
from tests.harness.cases import with_each


@with_each("name", [*conftest.LONGEST_FIRST, *conftest.STARTED_AFRESH, *conftest.SHARING, *conftest.SUITES])
def test_there_is_such_a_file_or_room(name: str) -> None:
    assert (conftest.TESTS / name).exists()
