"""Parameters of a worker: `WorkerSpec` before the fork, `WorkerFds` after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tricorn.record import Record
from tricorn.unpatched import select
from tricorn.workers.once import Once

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.log import Logger
    from tricorn.metrics.application import AppMetrics


class WorkerSpec(Record):
    """Parameters known before the fork."""

    server: Any
    """The arbiter as hooks know it."""
    config: Config
    log: Logger
    app: Any
    """The application as hooks know it (`application.Application`)."""
    age: int
    """The number of this worker, counted from the start of the server."""
    sockets: Sequence[Any]
    page: memoryview
    """Its page of the scoreboard."""
    pages: memoryview
    """The pages of all workers, of which it is one."""
    group: memoryview
    """The page that all workers write."""
    ledger: memoryview
    """Counters of workers that have exited."""
    routes: memoryview | None
    """Cost of the application's routes. None if it is not measured."""
    generation: int
    siblings: bool
    stand_in: bool
    """If the application cannot be loaded, show why instead of failing (`reload`)."""
    once: Once
    """Deduplicates boot errors between workers."""
    slot: int
    """From 1 on; of no other process that is alive, and given again."""
    app_metrics: AppMetrics | None = None
    """Files of the application's own metrics, if tricorn manages them."""
    sessions: memoryview | None = None
    """The table of sessions; None: they do not stay with their workers."""
    tls_page: memoryview | None = None
    """Certificates and keys, which the arbiter changes; None: all is in the clear."""

    @property
    def hands_over(self) -> bool:
        """Whether connections go from it to others, and come to it: siblings may come later, or be those that leave."""
        return self.config.handover


class WorkerFds(Record):
    """The descriptors of a worker; known after the fork."""

    listeners: Sequence[int]
    admin_listeners: Sequence[int]
    messages: int
    """The write end of this worker's pipe to the arbiter."""
    life: int
    """The read end of a pipe that only the arbiter holds open: it ends when the arbiter does."""
    channel: tuple[int, int, int] | None = None
    """Channel for handing over connections: receiving end, sending end, wake-up eventfd. None without hand-over."""
    mailboxes: tuple[int, int, list[int]] | None = None
    """Its own mailbox (receiving end, number), and the sending ends of all. None without sessions."""
    start_listening: Callable[[], object] = lambda: None
    """Listens with the sockets that only this worker has (`reuse_port`)."""
    refuse_newcomers: Callable[..., object] = lambda **_: None
    """Lets no new connection begin at listeners that only this worker has (`reuse_port`).

    `none_listens`: no other worker has any at these addresses.
    """
    reports: int = -1
    """The file of its reports and stacks, which the arbiter reads (`Reports`)."""
    profile_bell: int = -1
    """The read end of a pipe at which its sampler waits for orders."""

    def has_no_arbiter(self) -> bool:
        """Whether the arbiter's end of `life` is closed."""
        return self.life >= 0 and bool(select.select((self.life,), (), (), 0)[0])
