"""A worker that takes its class from the application that it has loaded."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tricorn import forked, workers
from tricorn.gateway import interfaces
from tricorn.workers import native
from tricorn.workers.base import Worker

if TYPE_CHECKING:
    import asyncio


class AutoWorker(Worker):
    """It loads the application and becomes a worker of another class: its `__class__` is assigned.

    The object stays, since the hooks `pre_fork` and `post_fork` have seen it and may have put things on it. A class's
    own preparation then comes after the loading, so that no class that patches is ever chosen.
    """

    _loop: Any = None
    """The current event loop before the application was loaded."""
    _epolls: frozenset[int] = frozenset()

    def prepare(self) -> None:
        self._loop, self._epolls = _current_loop(), frozenset(forked.epolls())

    def loaded(self) -> None:
        chosen, reason = interfaces.class_for(self.wsgi, self.app.app_uri)
        alias = workers.choose(chosen, self.cfg.threads)
        loop = _current_loop()
        made = None if loop is self._loop else (loop, self._epolls)
        del self._loop, self._epolls
        self.spec = replace(self.spec, worker_class=alias)
        _become(self, alias, made)
        self.prepare()
        self.loaded()
        if not self.stands_in:
            self.notice("info", f"Using worker: {alias} ({reason})")
        if in_memory := native.uploads_in_memory(self.cfg, alias):
            self.notice("warning", in_memory)

    def serve(self, core: object, gateway: object) -> None:
        raise AssertionError("a worker has a class of its own before it serves")


def _become(worker: Worker, alias: str, made: tuple[asyncio.AbstractEventLoop, frozenset[int]] | None) -> None:
    worker.__class__ = workers.load(alias)
    if alias in workers.LOOPS:
        from tricorn.workers.loops import LoopWorker

        assert isinstance(worker, LoopWorker)
        worker.made_loop = made


def _current_loop() -> Any:
    """The event loop that modules got when they asked for one, without making one; asyncio need not be imported."""
    events = sys.modules.get("asyncio.events")
    policy = getattr(events, "_event_loop_policy", None)
    return getattr(getattr(policy, "_local", None), "_loop", None)
