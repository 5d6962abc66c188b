"""One loop: waits, asks the policy what an event means, and performs the commands that it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from signal import Signals
from typing import Any

from tricorn.arbiter import hooks
from tricorn.arbiter.bulletin import Bulletin
from tricorn.arbiter.effects import Effects, Finished
from tricorn.arbiter.gauges import Gauges
from tricorn.arbiter.history import History
from tricorn.arbiter.lookups import Lookups
from tricorn.arbiter.own_time import LONGEST_WAIT, OwnTime
from tricorn.arbiter.policy.commands import Command
from tricorn.arbiter.policy.decide import decide
from tricorn.arbiter.policy.events import ChildExited, Event, Resized, Signalled, Start, Tick, Told, Upgraded
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.quiet import Silence
from tricorn.arbiter.renewal import Renewal
from tricorn.arbiter.watcher import Watcher
from tricorn.arbiter.worker_handle import LAST_WORDS, READ_SIZE, TooTalkative, WorkerHandle
from tricorn.unpatched import os, select, signal
from tricorn.workers.base import Worker

SIGNALS = tuple(
    Signals[f"SIG{name}"] for name in ["HUP", "QUIT", "INT", "TERM", "TTIN", "TTOU", "USR1", "USR2", "WINCH", "CHLD"]
)


def handlers_of_signals() -> dict[Signals, Any]:
    """Those of the program in which a server is about to run."""
    return {number: signal.getsignal(number) for number in SIGNALS}


def restore_signals(handlers: Mapping[Signals, Any]) -> None:
    """In a program that goes on when its server has ended, or has not started."""
    signal.set_wakeup_fd(-1)
    for number, handler in handlers.items():
        if handler is not None:  # one that was not installed by Python
            signal.signal(number, handler)


MANAGEMENT = 1.0
"""Seconds between calls of `manage_workers`."""


class Wakeup:
    """From here on signals are noted in a pipe, and nothing else happens to the process.

    Before the listeners are bound, so that no signal of an impatient supervisor ends a server that is starting. The
    interpreter's own C handler writes the number of the signal; ours do nothing.
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
    """`run` returns twice in a sense: in the arbiter when all is over, and in each fork with the worker it is.

    A fork returns instead of calling the worker from here, so that nothing of the arbiter, no frame and no
    `finally` of it, is left around the worker.
    """

    def __init__(self, effects: Effects, state: State, wakeup: Wakeup) -> None:
        self._effects = effects
        self._state = state
        self._time = OwnTime()
        self._guard = effects.processes.guard
        self._watcher = Watcher(effects, self._time.now())
        self._history = History(effects, self._time.now())
        self._bulletin = Bulletin(effects)
        self._gauges = Gauges(effects, self._time.now())
        self._lookups = Lookups(effects, self._time.now())
        self._silence = Silence(effects)
        self._renewal = Renewal(effects)
        self._events = effects.events
        self._events.append(Start())
        self._wakeup = wakeup.reader
        self._next_management = self._time.now() if effects.server.is_managing else NEVER
        effects.server.attach(effects.processes.workers, wakeup.ring, self._events.append)

    def run(self) -> Finished | Worker:
        self._bulletin.look(self._state, self._time.now())  # before there is a worker to ask
        while True:
            asked = self._effects.server.take_request()
            if asked is not None:
                self._events.appendleft(Resized(asked))
            while self._events:
                event = self._events.popleft()
                if isinstance(event, ChildExited):
                    self._effects.count_exit(self._state, event)
                for command in self._decide(event):
                    outcome = self._effects.perform(command)
                    if outcome is not None:
                        return outcome
            self._gauges.count_workers()
            with self._guard("The status cannot be written"):
                self._bulletin.look(self._state, self._time.now())
            self._wait()

    def _decide(self, event: Event) -> Sequence[Command]:
        if isinstance(event, Told):
            with self._guard("A message of a worker has no effect"):
                return self._take(event)
            return ()
        return self._take(event)

    def _take(self, event: Event) -> Sequence[Command]:
        before = self._state
        self._state, commands = decide(before, event, self._time.now())
        self._effects.show(self._state)
        if self._effects.control is not None:
            self._effects.control.tell(before, event, self._state, commands)
        return commands

    def _observe(self) -> None:
        """What the pages of workers say."""
        now = self._time.now()
        with self._guard("The pages of workers cannot be read"):
            self._events.extend(self._watcher.look(self._state, now))
            self._history.note(now)
            self._gauges.look(now)
            self._events.extend(self._silence.look(self._state, now))

    def _wait(self) -> None:
        now, end = self._time.now(), self._state.next_deadline()
        soon = NEVER if end == NEVER else now + LONGEST_WAIT
        looks = (
            self._watcher.next_look(self._state),
            self._history.next_note(),
            self._gauges.next_look(),
            self._lookups.next_look(),
            self._silence.next_look(self._state),
            self._renewal.next_look(now),
        )
        deadline = min(end, soon, *looks, self._next_management)
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        control = self._effects.control
        if control is not None:
            deadline = min(deadline, now if control.listener.has_more() else control.listener.deadline())
            control.listener.register(poll)
        timeout = None if deadline == NEVER else max(0, deadline - now)
        if self._lookups.descriptor >= 0:
            poll.register(self._lookups.descriptor, select.POLLIN)
        handles = self._effects.processes.handles
        for handle in handles.values():
            if handle.open:
                poll.register(handle.messages, select.POLLIN)
        ready: set[int] = set()
        self._time.wait(lambda seconds: ready.update(fd for fd, _ in poll.poll(_milliseconds(seconds))), timeout)
        for handle in handles.values():
            self._receive(handle)
        self._take_signals()
        self._observe()
        now = self._time.now()
        self._lookups.look(now)
        self._renewal.look()
        if now >= self._state.next_deadline():
            self._events.append(Tick())
        if now >= self._next_management:
            self._manage(now)
        if control is not None:
            self._events.extend(control.turn(ready, self._state, now))

    def _manage(self, now: float) -> None:
        """A program's own arbiter has a look, as gunicorn's lets it once a second."""
        self._next_management = NEVER if self._state.stopping is not None else now + MANAGEMENT
        if self._next_management == NEVER:
            return
        try:
            self._effects.server.manage_workers()
        except Exception:
            self._effects.generation.log.exception("Exception in manage_workers of the program's arbiter")

    def _take_signals(self) -> None:
        try:
            numbers = os.read(self._wakeup, 4096)
        except BlockingIOError:
            return
        for number in numbers:
            with suppress(ValueError):  # a signal of the application's that has no name
                signal = Signals(number)
                if not self._effects.server.take_signal(signal):
                    self._events.append(Signalled(signal))
        if Signals.SIGCHLD in numbers:
            self._reap()

    def _receive(self, handle: WorkerHandle, most: int = READ_SIZE) -> None:
        with self._guard("The messages of a worker cannot be read"):
            try:
                messages = handle.receive(self._time.now(), most)
            except TooTalkative:
                text = "Worker (pid:%d) sends more messages than the arbiter can read: it is killed."
                self._effects.generation.log.error(text, handle.pid)
                handle.close()
                handle.send(Signals.SIGKILL)
                return
            self._events.extend(Told(handle.nr, message) for message in messages)

    def _reap(self) -> None:
        effects = self._effects
        for who, event in effects.processes.reap():
            if event is None:
                if who == self._state.successor:
                    effects.upgrade.successor_ended()
                    if effects.control is not None:
                        effects.control.listener.bound.take_name_back()
                    self._events.append(Upgraded(None))
            elif isinstance(who, WorkerHandle):
                self._receive(who, LAST_WORDS)  # they come before its death
                effects.processes.remove(who)
                hooks.may(effects.generation, "child_exit", effects.server, who.worker)
                self._events.append(event)


def _milliseconds(seconds: float | None) -> int | None:
    """Rounded up: a millisecond early would mean a second, useless turn."""
    return None if seconds is None else int(seconds * 1000) + 1


def _noted(*_: object) -> None:
    pass
