"""One loop: waits, tells `decide` what happened, performs what it answers."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from signal import Signals
from typing import Any

from tricorn.arbiter.commands import CloseListeners, Command, Exit, Log, ReopenLogs, Send, Spawn
from tricorn.arbiter.decide import decide
from tricorn.arbiter.events import (
    ChildExited,
    Event,
    Signalled,
    Spawned,
    SpawnFailed,
    Start,
    Tick,
    WorkerBootFailed,
    WorkerReady,
)
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.sockets import Listener
from tricorn.arbiter.state import NEVER, State
from tricorn.arbiter.worker_handle import WorkerHandle, fork
from tricorn.config.config import Config
from tricorn.log import ErrorLog
from tricorn.workers.base import Assignment
from tricorn.workers.messages import BootFailed, Ready

SIGNALS = tuple(
    Signals[f"SIG{name}"] for name in ["HUP", "QUIT", "INT", "TERM", "TTIN", "TTOU", "USR1", "USR2", "WINCH", "CHLD"]
)


@dataclass(frozen=True, slots=True)
class Finished:
    code: int


@dataclass(frozen=True, slots=True)
class Site:
    """All that workers are started with."""

    config: Config
    worker_class: str
    log: ErrorLog
    listeners: list[Listener]
    pages: Pages
    application: Callable[..., Any] | None


class Loop:
    """`run` returns twice in a sense: in the arbiter when all is over, and in each fork with its assignment.

    A fork returns instead of calling the worker from here, so that nothing of the arbiter, no frame and no
    `finally` of it, is left around the worker.
    """

    def __init__(self, site: Site, state: State) -> None:
        self._site = site
        self._state = state
        self._handles: dict[int, WorkerHandle] = {}
        self._events: deque[Event] = deque([Start()])
        self._wakeup, self._wakeup_writer = os.pipe()
        self._life, self._life_writer = os.pipe()

    def run(self) -> Finished | Assignment:
        self._listen_to_signals()
        while True:
            while self._events:
                self._state, commands = decide(self._state, self._events.popleft(), time.monotonic())
                for command in commands:
                    outcome = self._perform(command)
                    if outcome is not None:
                        return outcome
            self._wait()

    # Events in

    def _listen_to_signals(self) -> None:
        """The interpreter's own C handler writes the number of a signal into the pipe; ours do nothing."""
        for end in (self._wakeup, self._wakeup_writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wakeup_writer, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, _noted)

    def _wait(self) -> None:
        deadline = self._state.next_deadline()
        timeout = None if deadline == NEVER else max(0, deadline - time.monotonic())
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        for handle in self._handles.values():
            if handle.open:
                poll.register(handle.messages, select.POLLIN)
        # Rounded up: a millisecond early would mean a second, useless turn.
        poll.poll(None if timeout is None else int(timeout * 1000) + 1)
        for handle in self._handles.values():
            self._receive(handle)
        self._take_signals()
        if time.monotonic() >= deadline:
            self._events.append(Tick())

    def _take_signals(self) -> None:
        try:
            numbers = os.read(self._wakeup, 4096)
        except BlockingIOError:
            return
        for number in numbers:
            self._events.append(Signalled(Signals(number)))
        if Signals.SIGCHLD in numbers:
            self._reap()

    def _receive(self, handle: WorkerHandle) -> None:
        for message in handle.receive():
            match message:
                case Ready():
                    self._events.append(WorkerReady(handle.nr))
                case BootFailed(code, reason):
                    self._events.append(WorkerBootFailed(handle.nr, code, reason))

    def _reap(self) -> None:
        by_pid = {handle.pid: handle for handle in self._handles.values()}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            handle = by_pid.get(pid)
            if handle is None:
                continue  # as process 1 of a container we inherit other people's orphans
            self._receive(handle)  # its last words come before its death
            handle.close()
            del self._handles[handle.nr]
            self._site.pages.give_back(handle.page)
            self._events.append(ChildExited(handle.nr, os.waitstatus_to_exitcode(status)))

    # Commands out

    def _perform(self, command: Command) -> Finished | Assignment | None:
        match command:
            case Spawn():
                return self._spawn(command)
            case Send(nr, number):
                if nr in self._handles:
                    self._handles[nr].send(number)
            case Log(level, text):
                getattr(self._site.log, level)(text)
            case CloseListeners():
                for listener in self._site.listeners:
                    listener.close()
            case ReopenLogs():
                self._site.log.reopen()
            case Exit(code):
                return Finished(code)
        return None

    def _spawn(self, command: Spawn) -> Assignment | None:
        page = self._site.pages.take()
        if page is None:
            self._events.append(SpawnFailed(command.nr, "too many workers are still leaving"))
            return None
        # What stands in a buffer at the fork would be written by both.
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            forked = fork(SIGNALS)
        except OSError as error:
            self._site.pages.give_back(page)
            self._events.append(SpawnFailed(command.nr, error.strerror or str(error)))
            return None
        if forked.pid == 0:
            return self._assignment(command, page, forked.messages)
        self._handles[command.nr] = WorkerHandle(command.nr, forked.pid, forked.messages, page)
        # First in the queue: an exit of this worker cannot be noticed before its start.
        self._events.appendleft(Spawned(command.nr, forked.pid))
        return None

    def _assignment(self, command: Spawn, page: int, messages: int) -> Assignment:
        """In the child: closes what is the arbiter's."""
        for handle in self._handles.values():
            handle.close()
        for end in (self._wakeup, self._wakeup_writer, self._life_writer):
            os.close(end)
        site = self._site
        for listener in site.listeners:
            # A program that the application starts must not hold the port.
            listener.socket.set_inheritable(False)
        return Assignment(
            config=site.config,
            worker_class=site.worker_class,
            log=site.log,
            # Detached: from here on they are the core's, and no Python object closes them behind its back.
            listeners=[listener.socket.detach() for listener in site.listeners],
            page=site.pages.page(page),
            siblings=command.siblings,
            messages=messages,
            life=self._life,
            application=site.application,
        )


def _noted(*_: object) -> None:
    pass
