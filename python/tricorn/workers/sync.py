"""One request at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.workers.base import Worker

if TYPE_CHECKING:
    from types import FrameType

    from tricorn.workers.native import Core, WsgiGateway


class SyncWorker(Worker):
    """The main thread waits, reads, calls the application and answers."""

    alias = "sync"

    def serve(self, core: Core, gateway: WsgiGateway) -> None:
        core.serve(gateway)

    def end_calls(self, frame: FrameType | None) -> bool:
        serve = SyncWorker.serve.__code__
        inner = frame
        while inner is not None and inner.f_code is not serve:
            inner = inner.f_back
        if inner is None or inner is frame:
            return False
        raise SystemExit
