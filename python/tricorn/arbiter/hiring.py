"""Workers of a generation: made before or after their fork, and given their descriptors after it.

In a fork of the arbiter, or of a mold, which has left behind what is the arbiter's (`ProcessTable.leave`).
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from tricorn.arbiter.channel import SharedChannel
from tricorn.arbiter.generation import Generation
from tricorn.arbiter.hook_api import Server
from tricorn.arbiter.listeners import reuse_port
from tricorn.arbiter.routes import Routes
from tricorn.errors import ExitCode
from tricorn.metrics.application import AppMetrics
from tricorn.record import Record, replace
from tricorn.unpatched import os
from tricorn.workers.base import Worker
from tricorn.workers.messages import BootFailed, encode
from tricorn.workers.once import Once
from tricorn.workers.spec import WorkerFds, WorkerSpec


class Files(Record):
    """The file of a worker's reports, which the arbiter reads, and a bell; -1 where the system has none."""

    reports: int
    bell_reader: int
    bell_writer: int
    """Rung for an order of a profile."""

    def close(self) -> None:
        for file in vars(self).values():
            _close(file)

    def of_arbiter(self) -> Files:
        """Without the end of the bell that is the worker's."""
        _close(self.bell_reader)
        return replace(self, bell_reader=-1)

    def of_worker(self) -> Files:
        """Without the end of the bell that is the arbiter's."""
        _close(self.bell_writer)
        return replace(self, bell_writer=-1)


class Position(Record):
    """Decisions of the arbiter about a worker, before its fork."""

    nr: int
    generation: int
    age: int
    slot: int
    page: int
    """The number of its page of the scoreboard."""
    siblings: bool
    stand_in: bool


class Hiring:
    """All that the workers have in common, and what makes one of them."""

    def __init__(self, server: Server, shared: SharedChannel, app_metrics: AppMetrics | None) -> None:
        self.server = server
        self.shared = shared
        self.app_metrics = app_metrics
        """The directory of the application's own metrics."""
        self.life, self.writer = os.pipe()
        """A pipe whose write end only the arbiter holds open."""
        self.routes = Routes()
        self.once = Once()

    def open_memory(self, generation: Generation) -> None:
        """Makes the memory that is made when it is first needed: forks of a mold cannot share it later."""
        self.routes.memory(generation.config.route_metrics, generation.log)

    def hire(self, position: Position, generation: Generation) -> Worker:
        """Makes a worker. Raises what its class raises."""
        pages = generation.pages
        assert pages is not None  # its page is one of them
        self.server.worker_age = position.age
        spec = WorkerSpec(
            server=self.server,
            config=generation.config,
            log=generation.log,
            app=generation.app,
            age=position.age,
            sockets=generation.listeners,
            page=pages.page(position.page),
            pages=pages.region,
            group=self.shared.group,
            ledger=self.shared.ledger,
            routes=self.routes.memory(generation.config.route_metrics, generation.log),
            generation=position.generation,
            siblings=position.siblings,
            stand_in=position.stand_in,
            once=self.once,
            slot=position.slot,
            app_metrics=self.app_metrics,
            sessions=self._sessions(position, generation),
            tls_page=None if generation.certificates is None else generation.certificates.page,
        )
        return generation.worker_class.hire(spec)

    def _sessions(self, position: Position, generation: Generation) -> memoryview | None:
        mailboxes, config = self.shared.mailboxes, generation.config
        if mailboxes is None or not (position.siblings and config.handover and config.affinity):
            return None
        return mailboxes.memory.view

    def join(self, worker: Worker, generation: Generation, messages: int, files: Files) -> None:
        """Gives a worker what it has besides its memory. Called in its process."""
        files = files.of_worker()
        listeners = reuse_port.open_for_worker(generation.listeners)
        own = [each.socket.fileno() for each in listeners if each not in generation.listeners]
        for listener in [*listeners, *generation.admin]:
            # A program that the application starts must not hold the port.
            listener.socket.set_inheritable(False)
        worker.after_fork(
            WorkerFds(
                listeners=[listener.hand_over() for listener in listeners],
                admin_listeners=[listener.hand_over() for listener in generation.admin],
                messages=messages,
                life=self.life,
                channel=self._share_channel(worker),
                mailboxes=self._share_mailboxes(worker),
                start_listening=partial(reuse_port.start_listening, own, generation.config.backlog),
                refuse_newcomers=partial(reuse_port.refuse_newcomers, own),
                reports=files.reports,
                profile_bell=files.bell_reader,
            )
        )

    def descriptors(self, generation: Generation) -> list[int]:
        """Lists what a worker gives to its core, or closes, and a mold needs."""
        channel, mailboxes = self.shared.channel, self.shared.mailboxes
        return [
            *(listener.socket.fileno() for listener in generation.all_listeners()),
            *([] if channel is None else channel.descriptors()),
            *([] if mailboxes is None else mailboxes.descriptors()),
            *([] if self.once.file is None else [self.once.file]),
            *([] if self.app_metrics is None else [self.app_metrics.descriptor]),
        ]

    def take_back(self, generation: Generation, descriptors: Iterator[int]) -> None:
        """Gets the same again, in this order. Called in a worker that becomes a mold."""
        for listener in generation.all_listeners():
            listener.take_back(next(descriptors))
        if self.shared.channel is not None:
            self.shared.channel.take_back(descriptors)
        if self.shared.mailboxes is not None:
            self.shared.mailboxes.take_back(descriptors)
        self.once.file = next(descriptors) if Once.is_shared() else None
        if self.app_metrics is not None:
            self.app_metrics.descriptor = next(descriptors)
            self.app_metrics.leave()

    def _share_channel(self, worker: Worker) -> tuple[int, int, int] | None:
        """Called in the child: returns its descriptors of the channel, or closes them if it has no use for them."""
        channel = self.shared.channel
        if channel is None:
            return None
        if worker.spec.hands_over:
            return channel.hand_over()
        channel.close()
        return None

    def _share_mailboxes(self, worker: Worker) -> tuple[int, int, list[int]] | None:
        """The same of the mailboxes."""
        mailboxes = self.shared.mailboxes
        if mailboxes is None:
            return None
        if worker.spec.sessions is not None:
            return mailboxes.hand_over(worker.slot)
        mailboxes.close()
        return None


@contextmanager
def only_worker(messages: int) -> Iterator[None]:
    """Ends a new worker's process on any exception, and tells the arbiter why.

    Further up the stack is the arbiter's loop, whose clean-up would remove the files of the running server.
    """
    try:
        yield
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"
        with suppress(OSError):
            os.write(messages, encode(BootFailed(ExitCode.WORKER_BOOT, reason)))
        traceback.print_exc()
        os._exit(ExitCode.WORKER_BOOT)


def _close(file: int) -> None:
    if file >= 0:
        os.close(file)
