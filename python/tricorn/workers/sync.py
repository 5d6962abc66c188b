"""One request at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.workers.base import Worker

if TYPE_CHECKING:
    from tricorn.workers.native import Core, WsgiGateway


class SyncWorker(Worker):
    """The main thread waits, reads, calls the application and answers."""

    alias = "sync"

    def serve(self, core: Core, gateway: WsgiGateway) -> None:
        core.serve(gateway)
