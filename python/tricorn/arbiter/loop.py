"""One loop: waits, asks the policy what an event means, and performs the commands that it answers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from signal import Signals
from typing import TYPE_CHECKING, Any

from tricorn.arbiter import hooks
from tricorn.arbiter.clock import LONGEST_WAIT, PausableClock
from tricorn.arbiter.control.dispatcher import Dispatcher
from tricorn.arbiter.effects import Effects, Finished
from tricorn.arbiter.molds.handle import MoldHandle
from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Deadlines, Periodic, Schedule
from tricorn.arbiter.policy.commands import Answer, Command, Refuse
from tricorn.arbiter.policy.decide import decide
from tricorn.arbiter.policy.events import ChildExited, Event, Resized, Signalled, Start, Told, Upgraded
from tricorn.arbiter.policy.exits import cause_of
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.worker_handle import LAST_WORDS, READ_SIZE, ProcessHandle, TooTalkative, WorkerHandle
from tricorn.unpatched import os, select, signal, time
from tricorn.workers.base import Worker
from tricorn.workers.stall import Stall

if TYPE_CHECKING:
    from tricorn.arbiter.molds.mold import Mold

SIGNALS = tuple(
    Signals[f"SIG{name}"] for name in ["HUP", "QUIT", "INT", "TERM", "TTIN", "TTOU", "USR1", "USR2", "WINCH", "CHLD"]
)


def handlers_of_signals() -> dict[Signals, Any]:
    """Returns the handlers of the program in which a server is about to run."""
    return {number: signal.getsignal(number) for number in SIGNALS}


def restore_signals(handlers: Mapping[Signals, Any]) -> None:
    """Gives a program its handlers back when its server has ended, or has not started."""
    signal.set_wakeup_fd(-1)
    for number, handler in handlers.items():
        if handler is not None:  # one that was not installed by Python
            signal.signal(number, handler)


MANAGEMENT = 1.0
"""Seconds between calls of `manage_workers`."""


class Wakeup:
    """The pipe that ends the loop's wait. From here on signals are written to it, and do nothing else to the process.

    Made before the listeners are bound, so that no signal of an impatient supervisor ends a server that is starting.
    The interpreter's own C handler writes the number of the signal; ours do nothing.
    """

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        for end in (self.reader, self.writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, _noted)

    def ring(self) -> None:
        """Ends the wait: 0 is no signal."""
        with suppress(BlockingIOError):  # full: it ends anyway
            os.write(self.writer, b"\0")


class Loop:
    """`run` returns twice in a sense: in the arbiter when all is over, and in each fork with the worker or mold it is.

    A fork returns instead of calling the worker from here, so that nothing of the arbiter, no frame and no
    `finally` of it, is left around the worker.
    """

    def __init__(
        self,
        parts: Parts,
        effects: Effects,
        control: Dispatcher,
        jobs: Iterable[Periodic],
        state: State,
        wakeup: Wakeup,
    ) -> None:
        self._parts = parts
        self._effects = effects
        self._control = control
        self._state = state
        self._clock = PausableClock()
        self._guard = parts.processes.guard
        management = Management(parts, self._clock.now())
        jobs = (*jobs, control.inquiries, Deadlines(LONGEST_WAIT), management)
        self._schedule = Schedule(jobs, self._guard)
        self._events = effects.events
        self._events.append(Start())
        self._wakeup = wakeup.reader
        parts.server.attach(parts.processes.workers, wakeup.ring, self._events.append)

    def run(self) -> Finished | Worker | Mold:
        self._run_jobs()  # before there is a worker that may be asked for the status
        while True:
            asked = self._parts.server.take_request()
            if asked is not None:
                self._events.appendleft(Resized(asked))
            while self._events:
                outcome = self._handle(self._events.popleft())
                if outcome is not None:
                    return outcome
            self._wait()

    def _handle(self, event: Event) -> Finished | Worker | Mold | None:
        before = self._state
        commands = self._decide(event)
        outcome = self._perform(commands)
        if outcome is None or isinstance(outcome, Finished):
            self._control.end_waits(before, event, self._state, commands)
        return outcome

    def _decide(self, event: Event) -> Sequence[Command]:
        if isinstance(event, Told):
            with self._guard("A message of a worker has no effect"):
                return self._take(event)
            return ()
        return self._take(event)

    def _take(self, event: Event) -> Sequence[Command]:
        before = self._state
        self._state, commands = decide(before, event, self._clock.now())
        self._effects.show(self._state)
        if isinstance(event, ChildExited) and event.nr in before.workers:
            self._parts.statistics.count_exit(cause_of(before.workers[event.nr], event.status))
        self._control.announce_decision(before, event, self._state, commands)
        return commands

    def _perform(self, commands: Sequence[Command]) -> Finished | Worker | Mold | None:
        for command in commands:
            if isinstance(command, Answer | Refuse):
                self._control.answer(command)
                continue
            outcome = self._effects.perform(command)
            if outcome is not None:
                return outcome
        return None

    def _wait(self) -> None:
        now, poll = self._clock.now(), select.poll()
        poll.register(self._wakeup, select.POLLIN)
        deadline = min(self._schedule.register(poll, self._state, now), self._control.register(poll, now))
        processes = self._parts.processes
        for handle in processes.handles.values():
            if handle.open:
                poll.register(handle.messages, select.POLLIN)
        for mold in processes.molds.values():
            mold.register(poll)
        ready: set[int] = set()
        timeout = None if deadline == NEVER else max(0, deadline - now)
        self._clock.wait(lambda seconds: ready.update(fd for fd, _ in poll.poll(_milliseconds(seconds))), timeout)
        self._events.extend(processes.hear())
        for process in (*processes.handles.values(), *processes.molds.values()):
            self._receive(process)
        self._take_signals()
        self._run_jobs(ready)
        self._events.extend(self._control.turn(ready, self._state, self._clock.now()))

    def _run_jobs(self, ready: Container[int] = ()) -> None:
        self._events.extend(self._schedule.run(self._state, self._clock.now(), ready))

    def _take_signals(self) -> None:
        try:
            numbers = os.read(self._wakeup, 4096)
        except BlockingIOError:
            return
        for number in numbers:
            with suppress(ValueError):  # a signal of the application's that has no name
                signal = Signals(number)
                if not self._parts.server.take_signal(signal):
                    self._events.append(Signalled(signal))
        if Signals.SIGCHLD in numbers:
            self._reap()

    def _receive(self, handle: ProcessHandle, most: int = READ_SIZE) -> None:
        with self._guard("The messages of a worker cannot be read"):
            try:
                messages = handle.receive(self._clock.now(), most)
            except TooTalkative:
                kind = "worker" if isinstance(handle, WorkerHandle) else "mold"
                text = "Killing %s (pid:%d): it sends more messages than the arbiter can read."
                self._parts.generation.log.error(text, kind, handle.pid)
                handle.close()
                handle.send(Signals.SIGKILL)
                return
            for message in messages:
                if isinstance(message, Stall) and isinstance(handle, WorkerHandle):
                    with self._guard("A stall cannot be reported"):
                        self._note_stall(handle, message)
                else:
                    self._events.append(Told(handle.nr, message))

    def _note_stall(self, handle: WorkerHandle, stall: Stall) -> None:
        """Keeps what has held up the loop of a worker, and logs it from time to time. It decides nothing."""
        from tricorn import cgroup  # these are for servers that have stalls, and none starts with one
        from tricorn.stalls.keeper import Held, Stalls

        generation, statistics = self._parts.generation, self._parts.statistics
        if statistics.stalls is None:
            statistics.stalls = Stalls()
        kind = handle.kind or handle.worker.alias
        machine = len(self._parts.processes.handles), cgroup.processors() if stall.verdict == "SATURATED" else None
        held = Held(handle.pid, handle.worker.slot, kind, generation.config.doctor, handle.libraries, *machine)
        record, line = statistics.stalls.take(stall, held, time.monotonic(), time.time())
        if line is not None:
            generation.log.warning("%s", line, extra={"stall": record})
        self._control.announce({"event": "stall", "nr": handle.nr, **record})

    def _reap(self) -> None:
        parts = self._parts
        for who, event in parts.processes.reap():
            if isinstance(who, ProcessHandle):
                self._receive(who, LAST_WORDS)  # they come before its death
            if isinstance(who, MoldHandle):
                who.end()
            if event is None:
                if who == self._state.successor:
                    parts.upgrade.successor_ended()
                    self._control.listener.take_name_back()
                    self._events.append(Upgraded(None))
            elif isinstance(who, WorkerHandle):
                parts.processes.remove(who)
                config, log = parts.generation.config, parts.generation.log
                hooks.may(config, log, "child_exit", parts.server, who.worker)
            if event is not None:
                self._events.append(event)


class Management(Periodic):
    """Calls `manage_workers` of a program's own arbiter once a second, as gunicorn does."""

    def __init__(self, parts: Parts, now: float) -> None:
        self._parts = parts
        self._next = now if parts.server.is_managing else NEVER

    def due(self, state: State, now: float) -> float:
        return NEVER if state.stopping is not None else self._next

    def run(self, state: State, now: float) -> Iterable[Event]:
        self._next = now + MANAGEMENT
        try:
            self._parts.server.manage_workers()
        except Exception:
            self._parts.generation.log.exception("Exception in manage_workers of the program's arbiter")
        return ()


def _milliseconds(seconds: float | None) -> int | None:
    """Rounded up: a millisecond early would mean a second, useless turn."""
    return None if seconds is None else int(seconds * 1000) + 1


def _noted(*_: object) -> None:
    pass
