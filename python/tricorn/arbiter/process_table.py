"""The process table: workers are forked into it, known by number, and reaped."""

from __future__ import annotations

import itertools
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from signal import Signals

from tricorn.arbiter import hooks
from tricorn.arbiter.channel import SharedChannel
from tricorn.arbiter.generation import Generation
from tricorn.arbiter.guard import Guard
from tricorn.arbiter.hook_api import Server
from tricorn.arbiter.listeners import reuse_port
from tricorn.arbiter.listeners.sockets import Listener
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.policy.commands import Spawn
from tricorn.arbiter.policy.events import ChildExited, Spawned, SpawnFailed
from tricorn.arbiter.routes import Routes
from tricorn.arbiter.worker_handle import WorkerHandle, fork, open_bell, open_reports
from tricorn.errors import ExitCode
from tricorn.metrics.application import AppMetrics
from tricorn.metrics.scoreboard import Ledger, Scoreboard
from tricorn.record import Record, replace
from tricorn.unpatched import os, time
from tricorn.workers import registry
from tricorn.workers.base import Worker
from tricorn.workers.messages import BootFailed, encode
from tricorn.workers.once import Once
from tricorn.workers.spec import WorkerFds, WorkerSpec

NAMED = 10
"""Most requests of a worker that is gone that the log names: the oldest."""


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


class ProcessTable:
    """The workers by number, and all that they have in common."""

    def __init__(
        self,
        server: Server,
        signals: Sequence[Signals],
        private: Sequence[int],
        shared: SharedChannel,
        release: Callable[[], object] = lambda: None,
        app_metrics: AppMetrics | None = None,
    ) -> None:
        self.server = server
        self.signals = signals
        """The signals that the arbiter handles, and a new worker must not inherit."""
        self.life, writer = os.pipe()
        """The read end of a pipe that only the arbiter holds open."""
        self.private = [*private, writer]
        """Descriptors that are the arbiter's alone."""
        self.shared = shared
        self.release = release
        """Called in the child: closes the arbiter's other descriptors."""
        self.app_metrics = app_metrics
        """The directory of the application's own metrics."""
        self.ledger = Ledger(shared.ledger)
        self.ledger.begin()
        self.routes = Routes()
        self.handles: dict[int, WorkerHandle] = {}
        self.once = Once()
        self.guard = Guard(lambda: self.server.log, time.monotonic)
        """The guard around all that a worker has written or sent."""

    def workers(self) -> dict[int, Worker]:
        """Returns the workers by pid, as hooks see them."""
        return {handle.pid: handle.worker for handle in list(self.handles.values())}  # a thread may ask

    def find(self, nrs: Iterable[int]) -> list[WorkerHandle]:
        """Returns the handles of the workers that are still there."""
        return [self.handles[nr] for nr in nrs if nr in self.handles]

    def spawn(
        self, command: Spawn, generation: Generation, others: Iterable[Listener]
    ) -> Worker | Spawned | SpawnFailed:
        """Forks. Returns in the new process the worker it is to be, in this one what happened.

        `others` are listeners of other generations, which this worker must not hold open.
        """
        pages = generation.pages
        number = pages.take() if pages is not None else None
        if pages is None or number is None:
            return SpawnFailed(command.nr, "too many workers are still leaving")
        try:
            worker = self._make(command, generation, pages, number)
        except (Exception, SystemExit):  # a class of the user's
            pages.give_back(number)
            generation.log.exception("Exception in the worker class %s", registry.dotted(generation.worker_class))
            return SpawnFailed(command.nr, "the worker class failed")
        if not hooks.may(generation.config, generation.log, "pre_fork", self.server, worker):
            # gunicorn's arbiter ends here. A configuration that never worked is refused; one that did goes on serving.
            if not command.proven:
                pages.give_back(number)
                return SpawnFailed(command.nr, "the hook pre_fork failed")
            generation.log.warning("Starting the worker although the hook pre_fork failed.")
        # What stands in a buffer at the fork would be written by both.
        sys.stdout.flush()
        sys.stderr.flush()
        files = Files(open_reports(), *open_bell())
        try:
            forked = fork(self.signals)
        except OSError as error:
            pages.give_back(number)
            files.close()
            return SpawnFailed(command.nr, error.strerror or str(error))
        if forked.pid == 0:
            with only_worker(forked.messages):
                for listener in others:
                    listener.socket.close()
                self._after_fork(worker, generation, forked.messages, files)
            return worker
        self.ledger.spawned()
        worker.pid = forked.pid
        files = files.of_arbiter()
        handle = WorkerHandle(
            command.nr,
            worker,
            forked.pid,
            forked.messages,
            pages,
            number,
            reports=files.reports,
            profile_bell=files.bell_writer,
        )
        self.handles[command.nr] = handle
        return Spawned(command.nr, forked.pid, int.from_bytes(os.urandom(4), "big") / 2**32)

    def _make(self, command: Spawn, generation: Generation, pages: Pages, number: int) -> Worker:
        self.server.worker_age += 1
        spec = WorkerSpec(
            server=self.server,
            config=generation.config,
            log=generation.log,
            app=generation.app,
            age=self.server.worker_age,
            sockets=generation.listeners,
            page=pages.page(number),
            pages=pages.region,
            group=self.shared.group,
            ledger=self.shared.ledger,
            routes=self.routes.memory(generation.config.route_metrics, generation.log),
            generation=command.generation,
            siblings=command.siblings,
            stand_in=command.stand_in,
            once=self.once,
            slot=self._free_slot(),
            app_metrics=self.app_metrics,
            sessions=self._sessions(command, generation),
            tls_page=None if generation.certificates is None else generation.certificates.page,
        )
        return generation.worker_class.hire(spec)

    def _sessions(self, command: Spawn, generation: Generation) -> memoryview | None:
        mailboxes, config = self.shared.mailboxes, generation.config
        if mailboxes is None or not (command.siblings and config.handover and config.affinity):
            return None
        return mailboxes.memory.view

    def _free_slot(self) -> int:
        """The lowest number that no process has. It is taken until waitpid(2) has told of the end of its process."""
        taken = {handle.worker.slot for handle in self.handles.values()}
        return next(slot for slot in itertools.count(1) if slot not in taken)

    def _after_fork(self, worker: Worker, generation: Generation, messages: int, files: Files) -> None:
        """Called in the child: closes what is the arbiter's, takes what is the worker's."""
        for handle in self.handles.values():
            handle.forget()
        files = files.of_worker()
        for descriptor in self.private:
            os.close(descriptor)
        self.release()
        self.shared.release()
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

    def reap(self) -> list[tuple[WorkerHandle | int, ChildExited | None]]:
        """The processes that ended: workers with the event of it, others by pid."""
        by_pid = {handle.pid: handle for handle in self.handles.values()}
        gone: list[tuple[WorkerHandle | int, ChildExited | None]] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return gone
            if pid == 0:
                return gone
            handle = by_pid.get(pid)
            if handle is None:
                gone.append((pid, None))  # a successor; as process 1 of a container, other people's orphans too
                continue
            serving: tuple[str, ...] = ()
            with self.guard("The requests of a worker that has ended cannot be read"):
                serving = _serving(handle)
            gone.append((handle, ChildExited(handle.nr, os.waitstatus_to_exitcode(status), serving)))

    def remove(self, handle: WorkerHandle) -> None:
        handle.forget()
        del self.handles[handle.nr]
        with self.guard("The figures of a worker that has ended cannot be read"):
            self.ledger.bury(Scoreboard(handle.pages.page(handle.page)))
            self.routes.bury(handle.worker.slot)
            if self.app_metrics is not None:
                self.app_metrics.bury(handle.worker.slot)
        handle.pages.give_back(handle.page)
        if self.shared.mailboxes is not None:
            count = self.shared.mailboxes.bury(handle.worker.slot)
            if count:
                self.server.log.warning(
                    "Requests rejected with 503 because the worker of their session ended: %d", count
                )
        if self.handles and not any(each.worker.spec.hands_over for each in self.handles.values()):
            self.turn_away()

    def note(self, pages: Pages) -> None:
        """Adds what all workers do now to the history."""
        self.ledger.note(pages.region, pages.size, self.shared.group)

    def turn_away(self) -> None:
        """Answers the requests in the channel, since no worker will. While one is to come they can wait for it."""
        count = self.shared.channel.turn_away() if self.shared.channel is not None else 0
        if self.shared.mailboxes is not None:
            count += self.shared.mailboxes.turn_away({handle.worker.slot for handle in self.handles.values()})
        if count:
            self.server.log.warning("Requests rejected with 503 because no worker was running: %d", count)


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


def _serving(handle: WorkerHandle) -> tuple[str, ...]:
    requests = sorted(handle.requests(), key=lambda request: -request.age)
    named = [f"{request.text} ({request.age:.1f} s)" for request in requests[:NAMED]]
    if len(requests) > NAMED:
        named.append(f"and {len(requests) - NAMED} more")
    return tuple(named)
