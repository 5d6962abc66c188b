"""A worker that takes its class from the application that it has loaded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tricorn import forked
from tricorn.gateway import interfaces
from tricorn.workers import core_options, registry, shared_imports
from tricorn.workers.base import Worker

if TYPE_CHECKING:
    import asyncio

    from tricorn.config.config import Config


class AutoWorker(Worker):
    """It loads the application and becomes a worker of another class: its `__class__` is assigned.

    The object stays, since the hooks `pre_fork` and `post_fork` have seen it and may have put things on it. A class's
    own preparation then comes after the loading, so that no class that patches is ever chosen.
    """

    alias = registry.AUTO
    streaming = True
    """It is not known yet."""
    _loop: Any = None
    """The current event loop before the application was loaded."""
    _epolls: frozenset[int] = frozenset()

    @classmethod
    def at_once(cls, config: Config) -> int:
        """Returns the largest limit of the classes that it may become."""
        return max(config.worker_connections, config.threads)

    @classmethod
    def import_for_application(cls, config: Config) -> None:
        imported = shared_imports.imported_by(config)
        if not imported:
            return
        shared_imports.import_modules(cls.standard_modules)
        likely = "asgi" if shared_imports.is_asgi(imported) else "sync"
        registry.load(registry.choose(likely, config.threads)).import_shared(config)

    def prepare(self) -> None:
        self._loop, self._epolls = _current_loop(), frozenset(forked.epolls())

    def loaded(self) -> None:
        chosen, reason = interfaces.class_for(self.wsgi, self.app.name)
        alias = registry.choose(chosen, self.cfg.threads)
        loop = _current_loop()
        made = None if loop is self._loop else (loop, self._epolls)
        del self._loop, self._epolls
        kind = registry.load(alias)
        _become(self, kind, made)
        self.prepare()
        self.loaded()
        if not self.stands_in:
            self.notice("info", f"Using worker: {alias} ({reason})")
        if warning := core_options.upload_warning(self.cfg, kind):
            self.notice("warning", warning)

    def serve(self, core: object, gateway: object) -> None:
        raise AssertionError("a worker has a class of its own before it serves")


def _become(worker: Worker, kind: type[Worker], made: tuple[asyncio.AbstractEventLoop, frozenset[int]] | None) -> None:
    worker.__class__ = kind
    if kind.hub:  # a loop: no class of greenlets is chosen
        from tricorn.workers.loops import LoopWorker

        assert isinstance(worker, LoopWorker)
        worker.made_loop = made


def _current_loop() -> Any:
    """The event loop that modules got when they asked for one, without making one; asyncio need not be imported."""
    events: Any = sys.modules.get("asyncio.events")
    if events is None:
        return None
    if sys.version_info >= MAKES_NO_LOOP:
        try:
            return events.get_event_loop()
        except RuntimeError:
            return None
    # Before, get_event_loop() makes a loop, and only the policy's own attributes tell. These versions change no more.
    policy = getattr(events, "_event_loop_policy", None)
    return getattr(getattr(policy, "_local", None), "_loop", None)


MAKES_NO_LOOP = (3, 14)
"""From this version of Python on asyncio.get_event_loop() raises RuntimeError where there is no loop."""
