"""ASGI applications: HTTP, WebSocket and lifespan, on asyncio or uvloop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from tricorn.gateway import agents, asgi, observe_asgi, stand_in, warmup_asgi
from tricorn.gateway.lifespan import Lifespan, drive
from tricorn.workers import registry, rehearsal
from tricorn.workers.loops import SHUTDOWN_REST, LoopWorker

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.gateway.warmup import Ask, Target
    from tricorn.log import Logger
    from tricorn.workers.native import AsgiGateway


class AsgiWorker(LoopWorker):
    """Each request is a task of its own."""

    alias = "asgi"
    websockets_over_http2 = True

    _lifespan: Lifespan

    @classmethod
    @contextmanager
    def rehearse(cls, application: Callable[..., Any], config: Config, log: Logger) -> Iterator[Ask | None]:
        kind = registry.loop_of(cls.alias, config)
        with rehearsal.stage(kind, log) as stage:
            lifespan = Lifespan(application, stage.loop, config.asgi_lifespan, log)
            drive(lifespan.startup(stage.wait))
            try:
                yield partial(_ask, application, config, lifespan, stage.complete)
            finally:
                drive(lifespan.shutdown(stage.wait))

    def make_ask(self) -> Ask | None:
        return partial(_ask, self.wsgi, self.cfg, self._lifespan, self.complete)

    def start_up(self) -> bool:
        self._lifespan = Lifespan(self.wsgi, self.loop, self.cfg.asgi_lifespan, self.log)
        return drive(self._lifespan.startup(self.wait_in_turns()))

    def shut_down(self) -> bool:
        return drive(self._lifespan.shutdown(self.wait_in_turns(SHUTDOWN_REST)))

    def make_gateway(self) -> AsgiGateway:
        before, after = observe_asgi.callbacks(self, self.cfg, self.log)
        state = self._lifespan.state
        application = agents.observed_asgi(self.wsgi)
        return asgi.make_gateway(application, self.loop, state, self.cfg, self.log, before=before, after=after)

    def make_stand_in(self, traceback: str) -> Any:
        return stand_in.make_asgi_stand_in(traceback)


def _ask(
    application: Callable[..., Any],
    config: Config,
    lifespan: Lifespan,
    complete: Callable[[Coroutine[Any, Any, None]], bool],
    target: Target,
) -> int | None:
    call = warmup_asgi.Call(application, warmup_asgi.make_scope(target, config.root_path, lifespan.state))
    return call.status if complete(call.run()) else None
