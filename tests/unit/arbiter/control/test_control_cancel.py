"""What an operator is told who wants to end a request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.control.cancel import ENDED, GONE, NO_LIMIT, OVER, TOLD, answer, check
from tricorn.arbiter.control.words import Refusal
from tricorn.arbiter.policy.wishes import Cancel


def handle(limit: float = 60) -> Any:
    """A worker that runs the call 3, which began at 77."""
    config = SimpleNamespace(request_timeout=limit)
    worker = SimpleNamespace(slot=2, spec=SimpleNamespace(config=config))
    return SimpleNamespace(worker=worker, pid=4711, requests=lambda: [SimpleNamespace(slot=3, started=77)])


def test_the_request_that_runs_is_asked_for() -> None:
    check(handle(), Cancel(1, 3, 77))


@pytest.mark.parametrize(
    ("of", "wish", "sentence"),
    [
        (None, Cancel(1, 3, 77), GONE),
        (handle(), Cancel(1, 3, 78), ENDED),
        (handle(), Cancel(1, 4, 77), ENDED),
        (handle(limit=0), Cancel(1, 3, 77), NO_LIMIT),
    ],
)
def test_what_cannot_be_is_refused_at_once(of: Any, wish: Cancel, sentence: str) -> None:
    with pytest.raises(Refusal) as caught:
        check(of, wish)
    assert str(caught.value) == sentence


def test_the_answer_says_what_became_of_it() -> None:
    assert answer(handle(), "told") == {"ok": True, "result": {"status": "cancelled", "pid": 4711, "note": TOLD}}
    for became, sentence in (("ended", ENDED), ("over", OVER)):
        assert answer(handle(), became) == {"ok": False, "kind": "refused", "error": sentence}  # type: ignore[arg-type]
    assert "Worker 2 (pid 4711) does not listen" in str(answer(handle(), None)["error"])
    assert answer(None, None)["error"] == GONE
