"""Performs the commands of the policy."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from tricorn.arbiter import hooks
from tricorn.arbiter.control.desk import Desk
from tricorn.arbiter.control.listener import ControlListener
from tricorn.arbiter.generation import Generation, close
from tricorn.arbiter.generations import Generations
from tricorn.arbiter.pidfile import Pidfiles
from tricorn.arbiter.policy.commands import (
    Answer,
    AskForStack,
    AskForStacks,
    ChangeLogLevel,
    CloseListeners,
    Command,
    Commit,
    Exit,
    Log,
    LogReady,
    NoteStall,
    Notify,
    Order,
    OrderCancel,
    OrderProfile,
    Refuse,
    Reload,
    ReopenLogs,
    Rollback,
    Send,
    ServiceState,
    Spawn,
    StartSuccessor,
    TellCancelled,
    TellLogLevel,
    TellProfile,
    TellStacks,
    WorkersChanged,
)
from tricorn.arbiter.policy.endings import cause_of
from tricorn.arbiter.policy.events import (
    ChildExited,
    Event,
    Reloaded,
    ReloadFailed,
    Spawned,
    SpawnFailed,
    Upgraded,
)
from tricorn.arbiter.policy.state import State
from tricorn.arbiter.process_table import ProcessTable
from tricorn.arbiter.systemd import Notifier
from tricorn.arbiter.upgrade import Upgrade
from tricorn.arbiter.worker_handle import PROFILES
from tricorn.errors import TricornError
from tricorn.log import Logger
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.record import Record
from tricorn.unpatched import os, time
from tricorn.workers import ending, watch
from tricorn.workers.base import Worker
from tricorn.workers.stall import Stall

if TYPE_CHECKING:
    from tricorn.arbiter.stalls.keeper import Stalls


class Finished(Record):
    code: int


class Effects:
    def __init__(
        self,
        generations: Generations,
        processes: ProcessTable,
        upgrade: Upgrade,
        pidfiles: Pidfiles,
        notifier: Notifier,
        control: ControlListener | None = None,
    ) -> None:
        self.generations = generations
        self.processes = processes
        self.upgrade = upgrade
        self.notifier = notifier
        self.server = processes.server
        self.events: deque[Event] = deque()
        """What comes of commands, and what else the policy is to hear of."""
        self.control = None if control is None else Desk(control, self)
        self.began = time.monotonic()
        self.exits: Counter[str] = Counter()
        """Why workers have ended, and how often."""
        self.reloads: Counter[str] = Counter()
        self.stalls: Stalls | None = None
        """Since the first one."""
        self._pidfiles = pidfiles
        self._scaled: int | None = None
        """The number of workers that an operator has asked for."""
        self._staying: dict[int, int] = {}
        """The generations of the workers that stay."""

    @property
    def generation(self) -> Generation:
        return self.generations.current

    def show(self, state: State) -> None:
        """Lets hooks see what is decided: how many workers are wanted, and which ones stay."""
        self.server.decided(state.target)
        self._scaled = state.scaled
        self.processes.ledger.publish(state.target, state.generation)
        self._staying = {worker.nr: worker.generation for worker in state.workers.values() if worker.counts}
        self._mark_alive(state.generation)

    def _mark_alive(self, generation: int) -> None:
        """A worker is alive for hooks if it stays, in this generation: others are replaced, or are about to be.

        Hooks that number workers give a successor the number of the worker that it replaces, which still serves.
        """
        for nr, handle in self.processes.handles.items():
            handle.worker.alive = self._staying.get(nr) == generation

    def count_exit(self, state: State, event: ChildExited) -> None:
        """For the metrics: why a worker has ended."""
        worker = state.workers.get(event.nr)
        if worker is not None:
            cause = cause_of(worker, event.status)
            self.processes.ledger.exited(cause)
            self.exits[cause] += 1

    def perform(self, command: Command) -> Finished | Worker | None:  # noqa: C901  # one line for each command
        match command:
            case Spawn():
                return self._spawn(command)
            case Send(nr, signal):
                if nr in self.processes.handles:
                    self.processes.handles[nr].send(signal)
            case AskForStack(nr):
                if nr in self.processes.handles and watch.STACK_SIGNAL is not None:
                    self.processes.handles[nr].send(watch.STACK_SIGNAL)
            case AskForStacks(nrs):
                self._ask_for_stacks(nrs)
            case TellStacks(ticket, nrs):
                handles = [self.processes.handles[nr] for nr in nrs if nr in self.processes.handles]
                if self.control is not None:
                    self.control.tell_stacks(ticket, handles)
            case OrderProfile() | TellProfile():
                self._profile(command)
            case OrderCancel(nr, place, start):
                if nr in self.processes.handles:
                    self.processes.handles[nr].order_cancel(place, start)
            case TellCancelled(ticket, nr):
                if self.control is not None:
                    self.control.tell_cancelled(ticket, self.processes.handles.get(nr))
            case Order(nrs):
                self._order(nrs, command)
            case Log(level, text):
                getattr(self.generation.log, level)("%s", text)
            case LogReady(workers):
                kinds = {handle.kind for handle in self.processes.handles.values() if handle.kind}
                kind = kinds.pop() if len(kinds) == 1 else ""
                self.generation.log.info("%s", self.generation.describe(workers, kind))
            case NoteStall(nr, stall):
                with self.processes.guard("A stall cannot be reported"):
                    self._note_stall(nr, stall)
            case CloseListeners():
                # Not those of probes: that a worker is leaving is what they are to be told.
                close(self.generation.listeners)
            case ReopenLogs():
                self.generation.log.reopen_files()
            case Reload(configuration):
                self._reload(configuration=configuration)
            case Commit(number):
                self._commit(number)
            case Rollback(number):
                self._roll_back(number)
            case WorkersChanged(new, old):
                hooks.may(self.generation, "nworkers_changed", self.server, new, old)
            case Notify(state):
                self._notify(state)
            case StartSuccessor():
                pid = self.upgrade.start(self.processes.signals)
                if pid is not None:
                    # First in the queue: another USR2 may be in it.
                    self.events.appendleft(Upgraded(pid))
            case ChangeLogLevel(level):
                self.generation.log.change_level(level)
            case TellLogLevel(nrs, level):
                for nr in nrs:
                    if nr in self.processes.handles:
                        self.processes.handles[nr].order_log_level(Logger.LOG_LEVELS[level])
            case Answer(ticket, result):
                self._answer(ticket, {"ok": True, "result": result})
            case Refuse(ticket, kind, sentence):
                self._answer(ticket, {"ok": False, "kind": kind, "error": sentence})
            case Exit(code):
                return Finished(code)
        return None

    def _answer(self, ticket: int, answer: dict[str, object]) -> None:
        if self.control is not None:
            self.control.answer(ticket, answer)

    def _ask_for_stacks(self, nrs: Sequence[int]) -> None:
        for nr in nrs:
            if nr in self.processes.handles:
                self.processes.handles[nr].ask_for_stacks()

    def _profile(self, command: OrderProfile | TellProfile) -> None:
        match command:
            case OrderProfile(nrs, seconds, rate):
                most = PROFILES // max(1, len(nrs))  # the answer has room for so much of each
                for nr in nrs:
                    if nr in self.processes.handles:
                        self.processes.handles[nr].order_profile(seconds, rate, most)
            case TellProfile(ticket, nrs):
                if self.control is not None:
                    self.control.tell_profile(ticket, nrs)

    def _spawn(self, command: Spawn) -> Worker | None:
        generation = self.generations[command.generation]
        self._mark_alive(command.generation)
        outcome = self.processes.spawn(command, generation, self.generations.others(generation))
        match outcome:
            case Spawned():
                # First in the queue: an exit of this worker cannot be noticed before its start.
                self.events.appendleft(outcome)
            case SpawnFailed():
                self.events.append(outcome)
            case worker:
                return worker
        return None

    def _order(self, nrs: Sequence[int], order: Order) -> None:
        for nr in nrs:
            handle = self.processes.handles.get(nr)
            if handle is not None:
                Scoreboard(handle.pages.page(handle.page)).order(
                    not_ready=order.not_ready,
                    drain=order.drain,
                    yields=order.yields,
                    replaced=order.replaced,
                )

    def _note_stall(self, nr: int, stall: Stall) -> None:
        from tricorn import cgroup
        from tricorn.arbiter.stalls.keeper import Held, Stalls

        handle, generation = self.processes.handles.get(nr), self.generation
        if handle is None:
            return
        if self.stalls is None:
            self.stalls = Stalls()
        kind = handle.kind or handle.worker.alias
        workers = len(self.processes.handles)
        machine = workers, cgroup.processors() if stall.verdict == "SATURATED" else None
        held = Held(handle.pid, handle.worker.slot, kind, generation.config.doctor, handle.libraries, *machine)
        record, line = self.stalls.take(stall, held, time.monotonic(), time.time())
        if line is not None:
            generation.log.warning("%s", line, extra={"stall": record})
        if self.control is not None:
            self.control.announce({"event": "stall", "nr": nr, **record})

    # Generations

    def _reload(self, *, configuration: bool) -> None:
        before = self.generation.config.workers
        try:
            number, warnings = self.generations.prepare(configuration=configuration)
        except (Exception, SystemExit) as error:
            if not isinstance(error, TricornError):
                self.generation.log.exception("Exception while the configuration was loaded")
            details = error.details.rstrip() if isinstance(error, TricornError) else ""
            self._refuse("\n".join(filter(None, (str(error) or type(error).__name__, details))))
            return
        try:
            if self.upgrade.parent is None:  # else it is renamed later
                self._pidfiles.prepare(self.generation.config.pidfile, self.generation.config.umask)
        except TricornError as error:
            self.generations.roll_back(number)
            self._refuse(str(error))
            return
        generation = self.generation
        self.server.adopt(generation)
        for warning in warnings:
            generation.log.warning("%s", warning)
        if configuration:
            old, sizing = self.server.num_workers, generation.config.sizing
            if sizing is not None:
                generation.log.info("%s", sizing.sentence)
            wanted = generation.config.workers
            if self._scaled is not None and wanted == before:
                wanted = self._scaled
            self.server.decided(wanted)
            hooks.may(generation, "nworkers_changed", self.server, wanted, old)
            hooks.may(generation, "on_reload", self.server)
        if generation.config.preload_app:
            generation.log.warning(
                "With preload_app the application's code is loaded once: the new workers run the code of before. "
                "USR2 or a restart loads new code."
            )
        self.server.decided(self.server.num_workers)  # which these hooks may have set
        self.server.take_request()
        self.events.append(Reloaded(number, self.server.num_workers, generation.policy))

    def _refuse(self, reason: str) -> None:
        self._count_reload("refused")
        self.events.append(ReloadFailed(reason))

    def _count_reload(self, result: str) -> None:
        self.processes.ledger.reloaded(result)
        self.reloads[result] += 1

    def _commit(self, number: int) -> None:
        self._count_reload("committed")
        self.generations.commit(number)
        self._pidfiles.commit()
        if self.upgrade.parent is None:  # else the name is still the other server's
            self.generation.set_title("master")

    def _roll_back(self, number: int) -> None:
        self._count_reload("rolled_back")
        self.generations.roll_back(number)
        self.server.adopt(self.generation)
        self._pidfiles.roll_back()

    # The service manager

    def _notify(self, state: ServiceState) -> None:
        notifier = self.notifier
        match state:
            case ServiceState.READY:
                if self.upgrade.parent is not None:
                    notifier.main_pid(os.getpid())
                notifier.ready(f"{self.server.num_workers} workers serve {self.generation.app.name}")
            case ServiceState.RELOADING:
                notifier.reloading()
            case ServiceState.STOPPING if self.upgrade.successor is not None:
                # The service goes on. systemd believes that its main process only (NotifyAccess=main): still us.
                notifier.main_pid(self.upgrade.successor)
            case ServiceState.STOPPING:
                notifier.stopping()

    # The end

    def leave(self, code: int) -> int:
        """The last steps in the arbiter; the workers are gone."""
        self.processes.turn_away()
        if self.control is not None:
            self.control.close()
        self.generation.close()
        self.generation.remove_files()
        self._pidfiles.unlink()
        hooks.may(self.generation, "on_exit", self.server)
        log = self.generation.log
        log.flush()
        ending.prepare(ending.Limits(log, self.generation.config.graceful_timeout))
        return code

    def quit(self) -> None:
        """A hook ends the arbiter: workers notice that it is gone and leave gracefully."""
        self.generation.log.error("A hook ends the server; its workers leave.", exc_info=True)
        self._leave_nothing()

    def abort(self) -> NoReturn:
        """The arbiter itself is broken: workers notice that it is gone and leave gracefully."""
        text = "The arbiter failed (this is a defect of tricorn); its workers leave."
        self.generation.log.critical(text, exc_info=True)
        self._leave_nothing()
        sys.stdout.flush()
        os._exit(UNHANDLED)

    def _leave_nothing(self) -> None:
        self._pidfiles.unlink()
        if self.control is not None:
            self.control.close()
        self.generation.remove_files()
        self.generation.log.flush()


UNHANDLED = 255
