"""Performs the mind's commands."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from tricorn.arbiter import hooks, reexec, reuse_port
from tricorn.arbiter import site as sites
from tricorn.arbiter.mind.commands import (
    AskForStack,
    CloseListeners,
    Command,
    Commit,
    Exit,
    Log,
    Notify,
    Order,
    Reload,
    ReopenLogs,
    Rollback,
    Send,
    ServiceState,
    Spawn,
    Upgrade,
    WorkersChanged,
)
from tricorn.arbiter.mind.events import Event, Reloaded, ReloadFailed, Spawned, SpawnFailed, Upgraded
from tricorn.arbiter.mind.state import NEVER, State
from tricorn.arbiter.nursery import Nursery
from tricorn.arbiter.pidfile import Pidfile
from tricorn.arbiter.site import Generations, Site
from tricorn.arbiter.systemd import Notifier
from tricorn.errors import TricornError
from tricorn.metrics import scoreboard
from tricorn.unpatched import os, time
from tricorn.workers import watch
from tricorn.workers.base import Worker


@dataclass(frozen=True, slots=True)
class Finished:
    code: int


@dataclass(slots=True)
class Lineage:
    """Whose place this server takes (USR2), and what is left to outsiders."""

    parent: int | None
    """The pid of the server this one replaces, while that lives."""
    pidfile: Pidfile | None
    notifier: Notifier
    next_pidfile: Pidfile | None = None
    """Of the generation on trial, if it wants another one."""


class Hands:
    def __init__(self, generations: Generations, nursery: Nursery, lineage: Lineage, launch: reexec.Command) -> None:
        self.generations = generations
        self.nursery = nursery
        self.server = nursery.server
        self.events: deque[Event] = deque()
        """What comes of commands, and whatever else the mind is to hear of."""
        self._lineage = lineage
        self._successor: int | None = None
        self._staying: dict[int, int] = {}
        """The generations of the workers that stay."""
        self._launch = launch
        self._next_greeting = time.monotonic() if lineage.notifier.watchdog_interval else NEVER

    @property
    def site(self) -> Site:
        return self.generations.current

    @property
    def parent(self) -> int | None:
        return self._lineage.parent

    def show(self, state: State) -> None:
        """Lets hooks see what is decided: how many workers are wanted, and which ones stay."""
        self.server.num_workers = state.target
        self._staying = {worker.nr: worker.generation for worker in state.workers.values() if worker.counts}
        self._mark_alive(state.generation)

    def _mark_alive(self, generation: int) -> None:
        """A worker is alive for hooks if it stays, in this generation: others are replaced, or are about to be.

        Hooks that number workers give a successor the number of the worker that it replaces, which still serves.
        """
        for nr, handle in self.nursery.handles.items():
            handle.worker.alive = self._staying.get(nr) == generation

    def perform(self, command: Command) -> Finished | Worker | None:  # noqa: C901  # one line for each command
        match command:
            case Spawn():
                return self._spawn(command)
            case Send(nr, number):
                if nr in self.nursery.handles:
                    self.nursery.handles[nr].send(number)
            case AskForStack(nr):
                if nr in self.nursery.handles and watch.STACK_SIGNAL is not None:
                    self.nursery.handles[nr].send(watch.STACK_SIGNAL)
            case Order(nrs):
                self._order(nrs, command)
            case Log(level, text):
                getattr(self.site.log, level)("%s", text)
            case CloseListeners():
                # Not those of probes: that a worker is leaving is what they are to be told.
                sites.close(self.site.listeners)
            case ReopenLogs():
                self.site.log.reopen_files()
            case Reload(configuration):
                self._reload(configuration=configuration)
            case Commit(generation):
                self._commit(generation)
            case Rollback(generation):
                self._roll_back(generation)
            case WorkersChanged(new, old):
                hooks.may(self.site.log, "nworkers_changed", self.site.config.nworkers_changed, self.server, new, old)
            case Notify(state):
                self._notify(state)
            case Upgrade():
                self._upgrade()
            case Exit(code):
                return Finished(code)
        return None

    def _spawn(self, command: Spawn) -> Worker | None:
        site = self.generations[command.generation]
        self._mark_alive(command.generation)
        outcome = self.nursery.spawn(command, site, self.generations.others(site))
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
            handle = self.nursery.handles.get(nr)
            if handle is not None:
                page = handle.pages.page(handle.page)
                scoreboard.order(
                    page,
                    not_ready=order.not_ready,
                    drain=order.drain,
                    yields=order.yields,
                    replaced=order.replaced,
                )

    # Generations

    def _reload(self, *, configuration: bool) -> None:
        try:
            generation, warnings = self.generations.prepare(configuration=configuration)
        except (Exception, SystemExit) as error:
            if not isinstance(error, TricornError):
                self.site.log.exception("Exception while the configuration was loaded")
            details = error.details.rstrip() if isinstance(error, TricornError) else ""
            self.events.append(ReloadFailed("\n".join(filter(None, (str(error) or type(error).__name__, details)))))
            return
        try:
            self._prepare_pidfile()
        except TricornError as error:
            self.generations.roll_back(generation)
            self.events.append(ReloadFailed(str(error)))
            return
        site = self.site
        self.server.adopt(site)
        for warning in warnings:
            site.log.warning("%s", warning)
        if configuration:
            old = self.server.num_workers
            self.server.num_workers = site.config.workers
            hooks.may(site.log, "nworkers_changed", site.config.nworkers_changed, self.server, site.config.workers, old)
            hooks.may(site.log, "on_reload", site.config.on_reload, self.server)
        if site.config.preload_app:
            site.log.warning(
                "With preload_app the application's code is loaded once: the new workers run the code of before. "
                "USR2 or a restart loads new code."
            )
        target = site.config.workers if configuration else self.server.num_workers
        self.events.append(Reloaded(generation, target, site.policy))

    def _commit(self, generation: int) -> None:
        self.generations.commit(generation)
        lineage = self._lineage
        if lineage.next_pidfile is not None:
            if lineage.pidfile is not None:
                lineage.pidfile.unlink()
            lineage.pidfile, lineage.next_pidfile = lineage.next_pidfile, None
        if lineage.parent is None:  # else the name is still the other server's
            sites.set_title(self.site, "master")

    def _roll_back(self, generation: int) -> None:
        self.generations.roll_back(generation)
        self.server.adopt(self.site)
        if self._lineage.next_pidfile is not None:
            self._lineage.next_pidfile.unlink()
            self._lineage.next_pidfile = None

    def _prepare_pidfile(self) -> None:
        """Writes the pidfile that a new configuration asks for beside the old one. Raises ConfigError."""
        lineage, path = self._lineage, self.site.config.pidfile
        if lineage.parent is None and path and (lineage.pidfile is None or lineage.pidfile.path != path):
            pidfile = Pidfile(path)
            pidfile.create(os.getpid())
            lineage.next_pidfile = pidfile

    # The service manager

    def _notify(self, state: ServiceState) -> None:
        notifier = self._lineage.notifier
        match state:
            case ServiceState.READY:
                if self._lineage.parent is not None:
                    notifier.main_pid(os.getpid())
                notifier.ready(f"{self.server.num_workers} workers serve {self.site.app.app_uri}")
            case ServiceState.RELOADING:
                notifier.reloading()
            case ServiceState.STOPPING if self._successor is not None:
                # The service goes on. systemd believes that its main process only (NotifyAccess=main): still us.
                notifier.main_pid(self._successor)
            case ServiceState.STOPPING:
                notifier.stopping()

    def service_manager_deadline(self) -> float:
        return self._next_greeting

    def greet_service_manager(self, now: float) -> None:
        """systemd's watchdog: as often as it asks for, as long as this loop turns."""
        interval = self._lineage.notifier.watchdog_interval
        if interval and now >= self._next_greeting:
            self._lineage.notifier.alive()
            self._next_greeting = now + interval

    # Succession

    def _upgrade(self) -> None:
        """USR2: the same command line again, with our listeners; both serve until somebody stops one."""
        if self._lineage.parent is not None:
            self.site.log.warning("USR2 signal ignored. Parent exists.")
            return
        site = self.site
        self._share_listeners(True)
        try:
            pid = reexec.start(
                self._launch,
                [listener.socket.fileno() for listener in reuse_port.to_hand_over(site.all_listeners())],
                systemd=self.generations.inherits,
                signals=self.nursery.signals,
                before_exec=lambda: site.config.pre_exec(self.server),
                failed=lambda error: site.log.error("The successor cannot be started: %s", error),
            )
        except OSError as error:
            site.log.error("The successor cannot be started: %s", error.strerror)
            self.successor_ended()
            return
        site.log.info("Started a successor with pid: %s", pid)
        self._successor = pid
        # First in the queue: another USR2 may be in it.
        self.events.appendleft(Upgraded(pid))

    def successor_ended(self) -> None:
        """The listeners are ours alone again."""
        self._successor = None
        self._share_listeners(self.generations.inherits)
        self.site.log.warning("The successor has ended; this server goes on.")

    def _share_listeners(self, shared: bool) -> None:
        for listener in self.site.all_listeners():
            listener.shared = shared

    def watch_parent(self) -> None:
        """The server we replace has ended: what bore its name is ours."""
        lineage = self._lineage
        if lineage.parent is None or os.getppid() == lineage.parent:
            return
        lineage.parent = None
        self.site.log.info("Master has been promoted.")
        self._share_listeners(self.generations.inherits)
        if lineage.pidfile is not None and self.site.config.pidfile:
            try:
                lineage.pidfile.rename(self.site.config.pidfile)
            except TricornError as error:
                self.site.log.error("%s", error)  # no reason to stop serving
        sites.set_title(self.site, "master")

    # The end

    def leave(self, code: int) -> int:
        """The last steps in the arbiter; the workers are gone."""
        self.nursery.turn_away()
        sites.close(self.site.all_listeners())
        sites.remove_files(self.site)
        if self._lineage.pidfile is not None:
            self._lineage.pidfile.unlink()
        hooks.may(self.site.log, "on_exit", self.site.config.on_exit, self.server)
        self.site.log.flush()
        return code

    def quit(self) -> None:
        """A hook ends the arbiter: workers notice that it is gone and leave gracefully."""
        self.site.log.error("A hook ends the server; its workers leave.", exc_info=True)
        self._leave_nothing()

    def perish(self) -> NoReturn:
        """The arbiter itself is broken: workers notice that it is gone and leave gracefully."""
        self.site.log.critical("The arbiter failed (this is a defect of tricorn); its workers leave.", exc_info=True)
        self._leave_nothing()
        sys.stdout.flush()
        os._exit(UNHANDLED)

    def _leave_nothing(self) -> None:
        if self._lineage.pidfile is not None:
            self._lineage.pidfile.unlink()
        sites.remove_files(self.site)
        self.site.log.flush()


UNHANDLED = 255
