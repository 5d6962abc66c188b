"""Inquiries: control requests that workers answer themselves. The policy hears of none of them.

Workers are asked by a signal, or by a word in shared memory, and write what they know into files or pages. All of that
is read when the deadline of the inquiry has come, or when all workers that were asked have ended. A class for each:
how it is parsed, which workers are asked, how, and what is made of their answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import ClassVar, get_args

from tricorn.arbiter.control.stacks import stacks
from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.policy.arguments import Arguments, Refusal
from tricorn.arbiter.policy.commands import Level
from tricorn.arbiter.policy.events import Event
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.worker_handle import PROFILES, WorkerHandle
from tricorn.log import Logger
from tricorn.record import Record

Json = dict[str, object]

WRITTEN = 0.3
"""Seconds in which a signal handler in C, or the sampler, has written; neither waits for the GIL."""
HEARD = 1.0
"""Seconds within which a monitor looks for the order, several times; it waits for no Python."""

MIN_SECONDS, MAX_SECONDS, MAX_RATE = 0.1, 600.0, 1000
"""Limits of a profile."""
MAX_MOMENT = (1 << 64) - 1
"""Nanoseconds."""


class Inquiry(Record):
    word: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    outlives_client: ClassVar[bool] = False
    """Ends at its deadline though the client has left: an order must not stay."""
    nrs: tuple[int, ...] = ()
    """The workers that the client has named."""

    @classmethod
    def parse(cls, arguments: Arguments) -> Inquiry:
        """Raises Refusal."""
        return cls(arguments.workers())

    @property
    def patience(self) -> float:
        """Seconds after which the answers are read."""
        return WRITTEN

    def check(self, parts: Parts, running: Sequence[Running], now: float) -> None:
        """Raises Refusal if it cannot be asked now. `running`: the inquiries under way."""

    def recipients(self, state: State) -> tuple[int, ...]:
        """Returns the ready workers to ask. Others may have no handler yet, and the signal would end them."""
        serving = tuple(nr for nr in self.nrs if nr in state.workers and state.workers[nr].served_since is not None)
        if not serving:
            raise Refusal("refused", "No such worker is ready yet.")
        return serving

    def prepare(self, parts: Parts) -> None:
        """Prepares the inquiry. Called before the workers are asked."""

    def ask(self, handle: WorkerHandle, count: int) -> None:
        """Asks one of `count` workers."""
        raise NotImplementedError

    def answer(self, handles: Sequence[WorkerHandle], asked: Sequence[int]) -> Json:
        """Makes the result from what workers have written. `handles`: of those asked, the ones that are still there.

        Raises Refusal.
        """
        raise NotImplementedError

    def abandon(self, handle: WorkerHandle) -> None:
        """Ends the inquiry. Called when its client has disconnected."""


class Stacks(Inquiry):
    """Asks where threads, greenlets and tasks are."""

    word: ClassVar[str] = "stacks"
    takes: ClassVar[tuple[str, ...]] = ("slot",)

    def ask(self, handle: WorkerHandle, count: int) -> None:
        handle.ask_for_stacks()

    def answer(self, handles: Sequence[WorkerHandle], asked: Sequence[int]) -> Json:
        return stacks(handles)


class Profile(Inquiry):
    """Has everything sampled that workers do. There is one at a time."""

    word: ClassVar[str] = "profile"
    takes: ClassVar[tuple[str, ...]] = ("seconds", "rate", "slot")
    seconds: float = MIN_SECONDS
    rate: int = 100
    """Samples per second."""

    @classmethod
    def parse(cls, arguments: Arguments) -> Profile:
        seconds, rate = arguments.seconds("seconds"), arguments.number("rate", 100)
        if not MIN_SECONDS <= seconds <= MAX_SECONDS:
            raise arguments.refusal("seconds", f"{MIN_SECONDS:g} to {MAX_SECONDS:g} seconds")
        if not 1 <= rate <= MAX_RATE:
            raise arguments.refusal("rate", f"1 to {MAX_RATE} samples per second")
        return cls(arguments.workers(), seconds, rate)

    @property
    def patience(self) -> float:
        return self.seconds + WRITTEN

    def check(self, parts: Parts, running: Sequence[Running], now: float) -> None:
        config = parts.generation.config
        if config.doctor == "off" or config.profile_after == 0:
            raise Refusal("refused", "The workers have no sampler, because doctor = off or profile_after = 0.")
        for other in running:
            if isinstance(other.inquiry, Profile):
                left = max(0.0, other.deadline - now)
                raise Refusal("busy", f"Another profile is running. Try again in {left:.1f} seconds.")

    def ask(self, handle: WorkerHandle, count: int) -> None:
        handle.order_profile(self.seconds, self.rate, PROFILES // count)  # the answer has room for so much of each

    def answer(self, handles: Sequence[WorkerHandle], asked: Sequence[int]) -> Json:
        """`missing`: slots of workers that have written nothing; null: of one that is gone, with what it had seen."""
        workers: list[Json] = []
        missing: list[int | None] = [None] * (len(asked) - len(handles))
        for handle in handles:
            written = read_object(handle.told_profile()[:PROFILES])
            if written is None:
                missing.append(handle.worker.slot)
            else:
                row = {"slot": handle.worker.slot, "pid": handle.pid, "class": handle.kind, "profile": written}
                workers.append(row)
        return {"workers": workers, "missing": missing}

    def abandon(self, handle: WorkerHandle) -> None:
        """Ends it: another client may want one."""
        handle.order_profile(0.0, 0, PROFILES)


class Cancel(Inquiry):
    """Ends one request."""

    word: ClassVar[str] = "cancel"
    takes: ClassVar[tuple[str, ...]] = ("slot", "place", "start")
    outlives_client: ClassVar[bool] = True
    place: int = 0
    """The worker's call."""
    start: int = 0
    """The time at which it began: makes sure that it is still that one."""

    @classmethod
    def parse(cls, arguments: Arguments) -> Cancel:
        place, start = arguments.number("place"), arguments.number("start", most=MAX_MOMENT)
        return cls((arguments.worker("slot"),), place, start)

    @property
    def patience(self) -> float:
        return HEARD

    def check(self, parts: Parts, running: Sequence[Running], now: float) -> None:
        handles = parts.processes.find(self.nrs)
        if not handles:
            raise Refusal("refused", GONE)
        if not any((each.slot, each.started) == (self.place, self.start) for each in handles[0].requests()):
            raise Refusal("refused", ENDED)
        if not handles[0].worker.spec.config.request_timeout:
            raise Refusal("refused", NO_LIMIT)
        if any(isinstance(other.inquiry, Cancel) and other.nrs == self.nrs for other in running):
            raise Refusal("busy", "This worker is cancelling another request. Try again in a second.")

    def recipients(self, state: State) -> tuple[int, ...]:
        return self.nrs

    def ask(self, handle: WorkerHandle, count: int) -> None:
        handle.order_cancel(self.place, self.start)

    def answer(self, handles: Sequence[WorkerHandle], asked: Sequence[int]) -> Json:
        if not handles:
            raise Refusal("refused", GONE)
        (handle,) = handles
        match handle.take_cancelled():
            case "told":
                return {"status": "cancelled", "pid": handle.pid, "note": TOLD}
            case "ended":
                raise Refusal("refused", ENDED)
            case "over":
                raise Refusal("refused", OVER)
            case None:
                who = f"Worker {handle.worker.slot} (pid {handle.pid})"
                raise Refusal("refused", f"{who} does not respond: it is stopped, or gets no CPU.")


class SetLogLevel(Inquiry):
    """Changes the level of the log, of the arbiter and of all workers: those that boot are told when they serve."""

    word: ClassVar[str] = "log-level"
    takes: ClassVar[tuple[str, ...]] = ("level",)
    level: Level = "info"

    @classmethod
    def parse(cls, arguments: Arguments) -> SetLogLevel:
        value = arguments.given.get("level")
        for level in LEVELS:
            if level == value:
                return cls(level=level)
        raise arguments.refusal("level", f"one of {', '.join(LEVELS)}")

    @property
    def patience(self) -> float:
        return 0.0

    def recipients(self, state: State) -> tuple[int, ...]:
        return tuple(nr for nr, worker in state.workers.items() if worker.served_since is not None)

    def prepare(self, parts: Parts) -> None:
        parts.generations.change_log_level(self.level)

    def ask(self, handle: WorkerHandle, count: int) -> None:
        handle.order_log_level(Logger.LOG_LEVELS[self.level])

    def answer(self, handles: Sequence[WorkerHandle], asked: Sequence[int]) -> Json:
        return {"level": self.level, "workers": len(asked)}


def tell_level(parts: Parts, nr: int, generation: int) -> None:
    """Sends a worker the log level that was set while it booted. Called when it starts to serve."""
    level = parts.generations.log_level(generation)
    if level is None:
        return
    for handle in parts.processes.find([nr]):
        handle.order_log_level(Logger.LOG_LEVELS[level])


class Running(Record):
    inquiry: Inquiry
    ticket: int
    nrs: tuple[int, ...]
    """The workers that were asked."""
    deadline: float


class Inquiries(Periodic):
    """The inquiries under way."""

    def __init__(self, parts: Parts, answer: Callable[[int, Json], None]) -> None:
        self._parts = parts
        self._answer = answer
        """Sends the answer to the client that has this ticket."""
        self._running: list[Running] = []

    def admit(self, inquiry: Inquiry, state: State, now: float) -> tuple[int, ...]:
        """Returns the workers to ask. Raises Refusal."""
        inquiry.check(self._parts, self._running, now)
        return inquiry.recipients(state)

    def begin(self, inquiry: Inquiry, nrs: tuple[int, ...], ticket: int, now: float) -> None:
        self._running.append(Running(inquiry, ticket, nrs, now + inquiry.patience))
        handles = self._parts.processes.find(nrs)
        with self._parts.processes.guard("Workers cannot be asked"):
            inquiry.prepare(self._parts)
            for handle in handles:
                inquiry.ask(handle, len(handles))

    def abandon(self, tickets: Collection[int]) -> None:
        """Ends the inquiries of clients that have disconnected."""
        for each in [each for each in self._running if each.ticket in tickets and not each.inquiry.outlives_client]:
            self._running.remove(each)
            for handle in self._parts.processes.find(each.nrs):
                each.inquiry.abandon(handle)

    def due(self, state: State, now: float) -> float:
        return min((now if self._is_over(each) else each.deadline for each in self._running), default=NEVER)

    def run(self, state: State, now: float) -> Iterable[Event]:
        due = [each for each in self._running if now >= each.deadline or self._is_over(each)]
        self._running = [each for each in self._running if each not in due]
        for each in due:
            answer: Json = {"ok": False, "kind": "failed", "error": DEFECT}
            with self._parts.processes.guard("Could not answer a control request"):
                answer = self._read(each)
            self._answer(each.ticket, answer)
        return ()

    def _read(self, running: Running) -> Json:
        try:
            result = running.inquiry.answer(self._parts.processes.find(running.nrs), running.nrs)
        except Refusal as refusal:
            return refusal.answer
        return {"ok": True, "result": result}

    def _is_over(self, running: Running) -> bool:
        """All workers that were asked have ended."""
        return not self._parts.processes.find(running.nrs)


def read_object(text: bytes) -> object | None:
    """Reads what a worker has written: it may be anything, and who uses it checks what it needs."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


LEVELS: tuple[Level, ...] = get_args(Level)

DEFECT = "This is a bug in tricorn. The server's log has the details."
GONE = "The worker has exited, and the request with it."
ENDED = "No such request: it has ended."
OVER = "Cannot cancel: it was cancelled before, has its response already, or is a WebSocket."
NO_LIMIT = "Requests can be cancelled only if request_timeout is set. Set it, for example to a day (86400)."
TOLD = (
    "tricorn.RequestCancelled is raised in it as soon as its Python code runs; C code is not interrupted. "
    "If it continues, the client gets a 504 after a second, unless the response has started."
)

ALL: tuple[type[Inquiry], ...] = (Stacks, Profile, Cancel, SetLogLevel)
