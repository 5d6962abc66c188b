"""Performs the commands of the policy. Decides nothing."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tricorn.arbiter import hooks
from tricorn.arbiter.generation import close
from tricorn.arbiter.parts import Parts
from tricorn.arbiter.pidfile import Pidfiles
from tricorn.arbiter.policy.commands import (
    AdoptMold,
    AskForStack,
    CloseListeners,
    Command,
    Commit,
    Exit,
    Log,
    LogReady,
    Notify,
    Order,
    Promote,
    Reload,
    ReopenLogs,
    Rollback,
    RunReloadHooks,
    Send,
    ServiceState,
    Spawn,
    StartMold,
    StartSuccessor,
    WorkersChanged,
)
from tricorn.arbiter.policy.events import Event, Prepared, Reloaded, ReloadFailed, Spawned, SpawnFailed, Upgraded
from tricorn.arbiter.policy.state import State
from tricorn.arbiter.systemd import Notifier
from tricorn.errors import TricornError
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.record import Record
from tricorn.unpatched import os
from tricorn.workers import watch
from tricorn.workers.base import Worker

if TYPE_CHECKING:
    from tricorn.arbiter.molds.mold import Mold


class Finished(Record):
    code: int


class Effects:
    def __init__(self, parts: Parts, pidfiles: Pidfiles, notifier: Notifier) -> None:
        self.events: deque[Event] = deque()
        """The results of commands, and other events that the policy has to decide on."""
        self._parts = parts
        self._server = parts.server
        self._processes = parts.processes
        self._generations = parts.generations
        self._upgrade = parts.upgrade
        self._pidfiles = pidfiles
        self._notifier = notifier
        self._staying: dict[int, int] = {}
        """The generations of the workers that stay."""

    def show(self, state: State) -> None:
        """Publishes a decision to hooks and metrics: how many workers are wanted, and which ones stay."""
        self._server.decided(state.target)
        self._processes.ledger.publish(state.target, state.generation)
        self._staying = {worker.nr: worker.generation for worker in state.workers.values() if worker.counts}
        self._mark_alive(state.generation)

    def _mark_alive(self, generation: int) -> None:
        """Marks workers alive for hooks if they stay, in this generation: others are replaced, or are about to be.

        Hooks that number workers give a successor the number of the worker that it replaces, which still serves.
        """
        for nr, handle in self._processes.handles.items():
            handle.worker.alive = self._staying.get(nr) == generation

    def perform(self, command: Command) -> Finished | Worker | Mold | None:  # noqa: C901  # one case for each command
        """Returns an end: of the arbiter, or in a fork the worker or the mold it is to be."""
        generation, log = self._generations.current, self._generations.current.log
        match command:
            case Spawn() | StartMold():
                return self._fork(command)
            case Promote() | AdoptMold():
                self._change_role(command)
            case Send(nr, number):
                self._processes.send(nr, number)
            case AskForStack(nr):
                if watch.STACK_SIGNAL is not None:
                    self._processes.send(nr, watch.STACK_SIGNAL)
            case Order():
                self._order(command)
            case Log(level, text):
                getattr(log, level)("%s", text)
            case LogReady(workers):
                kinds = {handle.kind for handle in self._processes.handles.values() if handle.kind}
                kind = kinds.pop() if len(kinds) == 1 else ""
                log.info("%s", generation.describe(workers, kind))
            case CloseListeners():
                # Not those of probes: that a worker is leaving is what they are to be told.
                close(generation.listeners)
            case ReopenLogs():
                log.reopen_files()
            case Reload(configuration):
                self._reload(configuration=configuration)
            case RunReloadHooks():
                self._run_reload_hooks(command)
            case Commit(number):
                self._commit(number)
            case Rollback(number, reason):
                self._roll_back(number, reason)
            case WorkersChanged(new, old):
                hooks.may(generation.config, log, "nworkers_changed", self._server, new, old)
            case Notify(state):
                self._notify(state)
            case StartSuccessor():
                pid = self._upgrade.start(self._processes.signals)
                if pid is not None:
                    # First in the queue: another USR2 may be in it.
                    self.events.appendleft(Upgraded(pid))
            case Exit(code):
                return Finished(code)
        return None

    # Workers

    def _fork(self, command: Spawn | StartMold) -> Worker | Mold | None:
        generation = self._generations[command.generation]
        others = self._generations.others(generation)
        outcome: Worker | Mold | Spawned | SpawnFailed | None
        if isinstance(command, StartMold):
            outcome = self._processes.start_mold(command, generation, others)
        else:
            self._mark_alive(command.generation)
            outcome = self._processes.spawn(command, generation, others)
        match outcome:
            case Spawned():
                # First in the queue: an exit of this worker cannot be noticed before its start.
                self.events.appendleft(outcome)
            case SpawnFailed():
                self.events.append(outcome)
            case child:
                return child
        return None

    def _change_role(self, command: Promote | AdoptMold) -> None:
        """A worker becomes a mold: it is told to, or has done so, which is its end as a worker."""
        if isinstance(command, Promote):
            self._processes.promote(command.nr, self._generations[command.generation])
            return
        worker = self._processes.adopt_mold(command.nr)
        if worker is not None:
            generation = self._generations.current
            self._parts.statistics.count_exit("refork")
            hooks.may(generation.config, generation.log, "child_exit", self._server, worker)

    def _order(self, order: Order) -> None:
        for handle in self._processes.find(order.nrs):
            Scoreboard(handle.pages.page(handle.page)).order(
                not_ready=order.not_ready,
                drain=order.drain,
                yields=order.yields,
                replaced=order.replaced,
                reconnect=order.reconnect,
            )

    # Generations

    def _reload(self, *, configuration: bool) -> None:
        """Loads and binds. If that fails, everything is as it was."""
        try:
            number, warnings = self._generations.prepare(configuration=configuration)
        except (Exception, SystemExit) as error:
            if not isinstance(error, TricornError):
                self._generations.current.log.exception("Exception while loading the configuration")
            details = error.details.rstrip() if isinstance(error, TricornError) else ""
            self._refuse("\n".join(filter(None, (str(error) or type(error).__name__, details))))
            return
        generation = self._generations.current
        try:
            if self._upgrade.parent is None:  # else it is renamed later
                self._pidfiles.prepare(generation.config.pidfile, generation.config.umask)
        except TricornError as error:
            self._generations.roll_back(number)
            self._refuse(str(error))
            return
        self._server.adopt(generation)
        log = generation.log
        for warning in warnings:
            log.warning("%s", warning)
        if configuration and generation.config.sizing is not None:
            log.info("%s", generation.config.sizing.sentence)
        if generation.config.preloads:
            log.warning("preload_app: the new workers run the old code. Send USR2 or restart to load new code.")
        self.events.appendleft(Prepared(number, generation.policy, configuration))

    def _run_reload_hooks(self, command: RunReloadHooks) -> None:
        generation, server = self._generations.current, self._server
        before = server.num_workers
        server.decided(command.workers)
        for name, arguments in (("nworkers_changed", (command.workers, before)), ("on_reload", ())):
            hooks.may(generation.config, generation.log, name, server, *arguments)
        asked = server.take_request()  # what these hooks may have set
        target = command.workers if asked is None else asked
        self.events.append(Reloaded(command.generation, command.policy, target))

    def _refuse(self, reason: str) -> None:
        self._parts.statistics.count_reload("refused")
        self.events.append(ReloadFailed(reason))

    def _commit(self, number: int) -> None:
        self._parts.statistics.count_reload("committed")
        self._generations.commit(number)
        self._pidfiles.commit()
        if self._upgrade.parent is None:  # else the name is still the other server's
            self._generations.current.set_title("master")

    def _roll_back(self, number: int, reason: str) -> None:
        self._parts.statistics.count_reload("rolled_back")
        self._generations.roll_back(number)
        self._server.adopt(self._generations.current)
        self._pidfiles.roll_back()
        generation = self._generations.current
        hooks.may(generation.config, generation.log, "on_rollback", self._server, reason)

    # The service manager

    def _notify(self, state: ServiceState) -> None:
        notifier, upgrade = self._notifier, self._upgrade
        match state:
            case ServiceState.READY:
                if upgrade.parent is not None:
                    notifier.main_pid(os.getpid())
                name = self._generations.current.app.name
                notifier.ready(f"{self._server.num_workers} workers serve {name}")
            case ServiceState.RELOADING:
                notifier.reloading()
            case ServiceState.STOPPING if upgrade.successor is not None:
                # The service goes on. systemd believes that its main process only (NotifyAccess=main): still us.
                notifier.main_pid(upgrade.successor)
            case ServiceState.STOPPING:
                notifier.stopping()
