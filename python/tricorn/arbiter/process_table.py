"""The process table: workers are forked into it, known by number, and reaped."""

from __future__ import annotations

import errno
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from signal import Signals
from typing import TYPE_CHECKING

from tricorn.arbiter import hooks
from tricorn.arbiter.channel import SharedChannel
from tricorn.arbiter.generation import Generation
from tricorn.arbiter.guard import Guard
from tricorn.arbiter.hiring import Files, Hiring, Position, only_worker
from tricorn.arbiter.hook_api import Server
from tricorn.arbiter.listeners.sockets import Listener
from tricorn.arbiter.molds.handle import MoldHandle
from tricorn.arbiter.molds.requests import (
    HasForked,
    Here,
    NotForked,
    Request,
    encode_request,
    open_requests,
    pickled,
    send_promotion,
)
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.policy.commands import Spawn, StartMold
from tricorn.arbiter.policy.events import ChildExited, Event, Spawned, SpawnFailed
from tricorn.arbiter.worker_handle import (
    NO_PID,
    Forked,
    ProcessHandle,
    WorkerHandle,
    fork,
    open_bell,
    open_reports,
)
from tricorn.metrics.application import AppMetrics
from tricorn.metrics.scoreboard import Ledger, Scoreboard
from tricorn.record import replace
from tricorn.unpatched import os, time
from tricorn.workers import native, registry
from tricorn.workers.base import Worker

if TYPE_CHECKING:
    from tricorn.arbiter.molds.mold import Mold

NAMED = 10
"""Most requests of a worker that is gone that the log names: the oldest."""


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
        self.hiring = Hiring(server, shared, app_metrics)
        self.private = [*private, self.hiring.writer]
        """Descriptors that are the arbiter's alone."""
        self.shared = shared
        self.release = release
        """Called in the child: closes the arbiter's other descriptors."""
        self.ledger = Ledger(shared.ledger)
        self.ledger.begin()
        self.handles: dict[int, WorkerHandle] = {}
        self.molds: dict[int, MoldHandle] = {}
        """Also those that have ended, as long as it is not known whether they forked all that was asked for."""
        self.guard = Guard(lambda: self.server.log, time.monotonic)
        """The guard around all that a worker has written or sent."""

    def workers(self) -> dict[int, Worker]:
        """Returns the workers by pid, as hooks see them."""
        return {handle.pid: handle.worker for handle in list(self.handles.values())}  # a thread may ask

    def find(self, nrs: Iterable[int]) -> list[WorkerHandle]:
        """Returns the handles of the workers that are still there."""
        return [self.handles[nr] for nr in nrs if nr in self.handles]

    def send(self, nr: int, number: int) -> None:
        """Sends a signal to a worker or a mold that is still there."""
        handle: ProcessHandle | None = self.handles.get(nr) or self.molds.get(nr)
        if handle is not None:
            handle.send(number)

    def spawn(
        self, command: Spawn, generation: Generation, others: Iterable[Listener]
    ) -> Worker | Spawned | SpawnFailed | None:
        """Forks. Returns in the new process the worker it is to be, in this one what happened.

        None: a mold has been asked to fork, and `hear` returns what happened. `others` are listeners of other
        generations, which this worker must not hold open.
        """
        pages = generation.pages
        number = pages.take() if pages is not None else None
        if pages is None or number is None:
            return SpawnFailed(command.nr, "too many workers are still leaving")
        age, slot = self.server.worker_age + 1, self._free_slot()
        stand_in = command.stand_in
        position = Position(command.nr, command.generation, age, slot, number, command.siblings, stand_in)
        try:
            worker = self.hiring.hire(position, generation)
        except (Exception, SystemExit):  # a class of the user's
            pages.give_back(number)
            generation.log.exception("Exception in the worker class %s", registry.dotted(generation.worker_class))
            return SpawnFailed(command.nr, "the worker class failed")
        before = dict(vars(worker))
        if not hooks.may(generation.config, generation.log, "pre_fork", self.server, worker):
            # gunicorn's arbiter ends here. A configuration that never worked is refused; one that did goes on serving.
            if not command.proven:
                pages.give_back(number)
                return SpawnFailed(command.nr, "the hook pre_fork failed")
            generation.log.warning("Starting the worker although the hook pre_fork failed.")
        files = Files(open_reports(), *open_bell())
        try:
            if command.mold is not None:
                self._ask(self._mold(command.mold), position, generation, worker, before, files)
                return None
            forked = self._fork()
        except OSError as error:
            pages.give_back(number)
            files.close()
            return SpawnFailed(command.nr, error.strerror or str(error))
        if forked.pid == 0:
            with only_worker(forked.messages):
                self.leave(others)
                self.hiring.join(worker, generation, forked.messages, files)
            return worker
        files = files.of_arbiter()
        handle = self._handle(command.nr, worker, forked.messages, pages, number, files)
        return self._enter(handle, forked.pid)

    def start_mold(
        self, command: StartMold, generation: Generation, others: Iterable[Listener]
    ) -> Mold | Spawned | SpawnFailed:
        """Forks a mold. Returns in the new process the mold it is to be, in this one what happened."""
        self.hiring.open_memory(generation)
        try:
            native.adopt_orphans()  # its workers are to be children of this process
            requests, its_end = open_requests()
        except OSError as error:
            return SpawnFailed(command.nr, error.strerror or str(error))
        try:
            forked = self._fork()
        except OSError as error:
            requests.close()
            its_end.close()
            return SpawnFailed(command.nr, error.strerror or str(error))
        if forked.pid == 0:
            with only_worker(forked.messages):
                from tricorn.arbiter.molds.mold import Mold

                requests.close()
                self.leave(others)
                return Mold(generation, self.hiring, forked.messages, its_end)
        its_end.close()
        self.molds[command.nr] = MoldHandle(command.nr, forked.pid, forked.messages, requests)
        return Spawned(command.nr, forked.pid)

    def _mold(self, nr: int) -> MoldHandle:
        """Raises OSError if it has ended: the policy is about to hear of that."""
        try:
            return self.molds[nr]
        except KeyError:
            raise ProcessLookupError(errno.ESRCH, "its mold has ended") from None

    def _fork(self) -> Forked:
        # What stands in a buffer at the fork would be written by both.
        sys.stdout.flush()
        sys.stderr.flush()
        return fork(self.signals)

    def leave(self, others: Iterable[Listener]) -> None:
        """Leaves behind what is the arbiter's. Called in a fork of it."""
        for listener in others:
            listener.socket.close()
        for handle in self.handles.values():
            handle.forget()
        for mold in self.molds.values():
            mold.forget()
        for descriptor in self.private:
            os.close(descriptor)
        self.release()
        self.shared.release()

    def _handle(
        self, nr: int, worker: Worker, messages: int, pages: Pages, page: int, files: Files, pid: int = NO_PID
    ) -> WorkerHandle:
        reports, bell = files.reports, files.bell_writer
        return WorkerHandle(nr, worker, pid, messages, pages, page, reports=reports, profile_bell=bell)

    def _enter(self, handle: WorkerHandle, pid: int) -> Spawned:
        """Enters a worker whose process is known."""
        self.ledger.spawned()
        handle.pid = handle.worker.pid = pid
        self.handles[handle.nr] = handle
        return Spawned(handle.nr, pid, int.from_bytes(os.urandom(4), "big") / 2**32)

    def _ask(
        self,
        mold: MoldHandle,
        position: Position,
        generation: Generation,
        worker: Worker,
        before: Mapping[str, object],
        files: Files,
    ) -> None:
        """Has a mold fork the worker. Raises OSError if there are no descriptors left."""
        pages = generation.pages
        assert pages is not None
        attributes, lost = pickled(before, vars(worker))
        for name in lost:
            generation.log.warning(
                "preload_app = mold: the hook pre_fork has set worker.%s, which pickle cannot take to the worker's "
                "process. Set it in post_fork.",
                name,
            )
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        handle = self._handle(position.nr, worker, reader, pages, position.page, replace(files, bell_reader=-1))
        handle.mold_requests, its_end = open_requests() if generation.config.refork else (None, None)
        requests = -1 if its_end is None else its_end.detach()
        request = Request(position, attributes, files.reports >= 0, files.bell_reader >= 0, requests >= 0)
        descriptors = [writer, files.reports, files.bell_reader, requests]
        mold.ask(handle, encode_request(request), descriptors, owned=[writer, files.bell_reader, requests])

    def promote(self, nr: int, generation: Generation) -> None:
        """Tells a worker, which is about to be told to leave, to become the mold then."""
        handle = self.handles.get(nr)
        if handle is None or handle.mold_requests is None:
            return
        try:
            send_promotion(handle.mold_requests, self.hiring.descriptors(generation))
        except OSError as error:
            reason = error.strerror or error
            generation.log.warning("Worker (pid:%d) could not be told to become the mold: %s", handle.pid, reason)

    def adopt_mold(self, nr: int) -> Worker | None:
        """Makes a worker's process that of a mold. Returns the worker, which has ended; None: its process has, too."""
        handle = self.handles.get(nr)
        if handle is None or handle.mold_requests is None:
            return None
        mold = MoldHandle(nr, handle.pid, handle.messages, handle.mold_requests)
        mold.decoder, mold.allowance, mold.open = handle.decoder, handle.allowance, handle.open
        handle.open, handle.mold_requests = False, None  # both are the mold's
        self.remove(handle)
        self.molds[nr] = mold
        return handle.worker

    def hear(self) -> list[Spawned | SpawnFailed]:
        """Returns what has become of the forks that molds were asked for."""
        events: list[Spawned | SpawnFailed] = []
        for mold in list(self.molds.values()):
            mold.flush()
            self._take(mold, events)
            ended = mold.ended()
            if ended:
                self._take(mold, events)  # a process that has ended since may have said so before
                for nr in ended.intersection(mold.pending):
                    self._drop(mold.pending.pop(nr))
                    events.append(SpawnFailed(nr, "it was killed at once"))
            if mold.is_gone and not mold.pending:
                mold.forget()
                del self.molds[mold.nr]
        return events

    def _take(self, mold: MoldHandle, events: list[Spawned | SpawnFailed]) -> None:
        for sender, reply in mold.replies():
            match reply:
                case NotForked(nr, reason) if sender == mold.pid and nr in mold.pending:
                    self._drop(mold.pending.pop(nr))
                    events.append(SpawnFailed(nr, reason))
                case HasForked(nr) if sender == mold.pid:
                    mold.answered.add(nr)
                case Here(nr) if self._is_unknown_child(sender):
                    handle = mold.pending.pop(nr, None)
                    if handle is None:
                        os.kill(sender, Signals.SIGKILL)  # nobody asked for it, or it was given up
                    else:
                        events.append(self._enter(handle, sender))

    def _is_unknown_child(self, pid: int) -> bool:
        """Whether this process is a child of ours that is no worker yet: the kernel says so, whoever has sent what."""
        if pid <= 0 or self._by_pid(pid) is not None:
            return False
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except (ChildProcessError, OverflowError):
            return False
        return True

    def _drop(self, handle: WorkerHandle) -> None:
        """There is no process of it."""
        handle.forget()
        handle.pages.give_back(handle.page)

    def _free_slot(self) -> int:
        """The lowest number that no process has. It is taken until waitpid(2) has told of the end of its process."""
        asked = (handle for mold in self.molds.values() for handle in mold.pending.values())
        taken = {handle.worker.slot for handle in (*self.handles.values(), *asked)}
        return next(slot for slot in itertools.count(1) if slot not in taken)

    def reap(self) -> Iterator[tuple[ProcessHandle | int, Event | None]]:
        """The processes that ended: workers and molds with the event of it, others by pid.

        And the beginning of such as have ended before anybody has asked for it.
        """
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            pid = found.si_pid
            handle = self._by_pid(pid)
            if handle is None and self.molds:
                for event in self.hear():  # a new worker says that it is there before it can end
                    yield pid, event
                handle = self._by_pid(pid)
            _, status = os.waitpid(pid, 0)
            if handle is None:
                yield pid, None  # a successor; as process 1 of a container, or with molds, other people's orphans too
                continue
            serving: tuple[str, ...] = ()
            if isinstance(handle, WorkerHandle):
                with self.guard("The requests of a worker that has ended cannot be read"):
                    serving = _serving(handle)
            elif self.hiring.app_metrics is not None:
                self.hiring.app_metrics.bury_mold(pid)
            yield handle, ChildExited(handle.nr, os.waitstatus_to_exitcode(status), serving)

    def _by_pid(self, pid: int) -> ProcessHandle | None:
        return next((each for each in (*self.handles.values(), *self.molds.values()) if each.pid == pid), None)

    def remove(self, handle: WorkerHandle) -> None:
        handle.forget()
        del self.handles[handle.nr]
        with self.guard("The figures of a worker that has ended cannot be read"):
            self.ledger.bury(Scoreboard(handle.pages.page(handle.page)))
            self.hiring.routes.bury(handle.worker.slot)
            if self.hiring.app_metrics is not None:
                self.hiring.app_metrics.bury(handle.worker.slot)
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


def _serving(handle: WorkerHandle) -> tuple[str, ...]:
    requests = sorted(handle.requests(), key=lambda request: -request.age)
    named = [f"{request.text} ({request.age:.1f} s)" for request in requests[:NAMED]]
    if len(requests) > NAMED:
        named.append(f"and {len(requests) - NAMED} more")
    return tuple(named)
