"""What several processes have to say is said by one, and again after a while."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tricorn.workers.once import PAUSE, Once


@pytest.fixture
def once() -> Iterator[Once]:
    made = Once()
    if made.file is None:
        pytest.skip("no memory files on this platform")
    yield made
    made.close()


def test_of_several_processes_one_claims_a_text(once: Once) -> None:
    children = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            os._exit(once.claim("no module named x"))
        children.append(pid)
    assert sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children) == 1
    assert not once.claim("no module named x")
    assert once.claim("no module named y")


def test_after_a_while_it_is_said_again_and_forgotten(once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("tricorn.workers.once.time.monotonic", lambda: now)
    assert once.claim("one")
    now += PAUSE - 0.1
    assert not once.claim("one")
    assert once.claim("two")
    now += 0.1
    assert once.claim("one")
    now += PAUSE
    assert once.claim("three")
    assert once.file is not None
    assert os.fstat(once.file).st_size == 24, "what is old takes no room"
