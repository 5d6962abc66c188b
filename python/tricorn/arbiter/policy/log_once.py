"""Rate limit for notices that every worker sends: logged once for each generation, or from time to time."""

from __future__ import annotations

from types import MappingProxyType

from tricorn.arbiter.policy.commands import Log
from tricorn.arbiter.policy.state import Decision, State
from tricorn.arbiter.policy.worker import Worker
from tricorn.record import replace
from tricorn.workers.messages import Notice


def log_once(state: State, worker: Worker, notice: Notice, now: float) -> Decision:
    """A text is logged once for each generation. Of texts with the same subject one is logged per `PAUSE`."""
    key = worker.generation, notice.subject or notice.text
    last = state.notices.get(key)
    if last is not None and (not notice.subject or now - last < PAUSE):
        return state, []
    kept = {other: at for other, at in state.notices.items() if other[0] >= worker.generation - 1}
    while len(kept) >= MOST:
        del kept[next(iter(kept))]  # the oldest
    kept.pop(key, None)
    return replace(state, notices=MappingProxyType(kept | {key: now})), [Log(notice.level, notice.text)]


MOST = 200
"""Texts that are remembered, whatever workers send."""

PAUSE = 9.0
"""Seconds; a little less than workers wait themselves (`green.database`), or one's second report would be left out."""
