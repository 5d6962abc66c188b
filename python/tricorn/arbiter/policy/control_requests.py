"""Requests of the control socket that change workers, or the server.

Each is one class: the word and the arguments that a client sends, how they are parsed, and what the policy decides.
"""

from __future__ import annotations

from signal import Signals
from typing import ClassVar

from tricorn.arbiter.policy import leaving, reloading, signals
from tricorn.arbiter.policy.arguments import Arguments
from tricorn.arbiter.policy.canary import Plan
from tricorn.arbiter.policy.commands import Answer, Command, Kind, Log, Order, Refuse
from tricorn.arbiter.policy.events import ControlRequest
from tricorn.arbiter.policy.settings import Policy
from tricorn.arbiter.policy.state import Decision, State
from tricorn.arbiter.policy.worker import Leaving, Retiring, Serving, Worker
from tricorn.config.validators import CanarySize, Invalid
from tricorn.record import replace


def requested(state: State, ticket: int, request: ControlRequest, now: float) -> Decision:
    if state.stopping is not None and not request.while_stopping:
        return _refuse(state, ticket, "The server is about to end.")
    return request.decide(state, ticket, now)


class ReloadAll(ControlRequest):
    """Reloads the configuration and the workers, as HUP does."""

    word: ClassVar[str] = "reload"
    takes: ClassVar[tuple[str, ...]] = ("wait", "canary", "for")
    wait: bool = False
    """The answer comes when the new generation serves, or has failed."""
    canary: int | str | None = None
    """Workers of the new generation to begin with, in place of the configured number: `1`, `"10%"`."""
    seconds: float | None = None
    """The time for which these are watched, in place of `canary_time`."""

    @classmethod
    def parse(cls, arguments: Arguments) -> ReloadAll:
        """Accepts `1`, `"1"`, `"10%"`, and true, which is 1."""
        return cls(arguments.flag("wait"), _canary(arguments), _seconds(arguments))

    def decide(self, state: State, ticket: int, now: float) -> Decision:
        if state.drain_at is not None:
            return _refuse(state, ticket, "The server is about to end.")
        state, commands = reloading.hang_up(state, self._plan(state.policy))
        return state, [*commands, Answer(ticket, {"status": "reloading"})]

    def _plan(self, policy: Policy) -> Plan | None:
        if self.canary is None and self.seconds is None:
            return None
        size = (policy.canary or 1) if self.canary is None else self.canary
        return replace(policy.plan, size=size, seconds=policy.canary_time if self.seconds is None else self.seconds)


def _canary(arguments: Arguments) -> int | str | None:
    given = arguments.given.get("canary")
    if given is None or given is True:
        return None if given is None else 1
    try:
        return CanarySize().parse(given)
    except Invalid:
        raise arguments.refusal("canary", "a number such as 1, or a share such as 10%") from None


def _seconds(arguments: Arguments) -> float | None:
    if "for" not in arguments.given:
        return None
    seconds = arguments.seconds("for")
    if seconds <= 0:
        raise arguments.refusal("for", "a number of seconds")
    return seconds


class Scale(ControlRequest):
    """Sets the number of workers: absolute, relative to the current one, or (both None) as configured."""

    word: ClassVar[str] = "scale"
    takes: ClassVar[tuple[str, ...]] = ("workers", "least")
    target: int | None = None
    by: int | None = None
    least: int = 0
    """A smaller result is raised to this number instead of refused."""

    @classmethod
    def parse(cls, arguments: Arguments) -> Scale:
        """Accepts `6`, `"6"`, `"+2"`, `"-1"`, `"auto"`."""
        value, least = arguments.given.get("workers"), arguments.number("least", 0)
        if isinstance(value, int) and not isinstance(value, bool):
            return cls(arguments.number("workers"), least=least)
        if value == "auto":
            return cls()
        if isinstance(value, str) and len(value) <= 11:
            sign, digits = (value[0], value[1:]) if value[:1] in ("+", "-") else ("", value)
            if digits.isascii() and digits.isdigit():
                return cls(by=int(value), least=least) if sign else cls(int(digits), least=least)
        raise arguments.refusal("workers", "a number such as 6, +2 or -1, or auto")

    def decide(self, state: State, ticket: int, now: float) -> Decision:
        before = state.target
        is_as_configured = self.target is None and self.by is None
        if is_as_configured:
            target = state.policy.workers
        else:
            target = max(self.least, before + (self.by or 0) if self.target is None else self.target)
        if not 1 <= target <= state.policy.max_workers:
            return _refuse(state, ticket, f"There can be 1 to {state.policy.max_workers} workers, not {target}.")
        state, commands = signals.scale(state, target)
        scaled = None if is_as_configured else target
        trial = state.trial
        if trial is not None and trial.watch is not None:
            trial = replace(trial, scaled=scaled)
        state = replace(state, scaled=scaled, trial=trial)
        return state, [*commands, Answer(ticket, {"previous": before, "workers": target})]


class Drain(ControlRequest):
    """Replaces a worker, its successor first."""

    word: ClassVar[str] = "drain"
    takes: ClassVar[tuple[str, ...]] = ("slot", "wait")
    nr: int
    wait: bool = False
    """The answer comes when the worker is gone."""

    @classmethod
    def parse(cls, arguments: Arguments) -> Drain:
        return cls(arguments.worker("slot"), arguments.flag("wait"))

    def decide(self, state: State, ticket: int, now: float) -> Decision:
        worker = state.workers.get(self.nr)
        if worker is None:
            return _refuse(state, ticket, "There is no such worker any more.")
        if state.trial is not None or state.drain_at is not None:
            return _refuse(state, ticket, "All workers are about to be replaced.", "busy")
        match worker.phase:
            case Serving(since, _, silent):
                phase = Retiring(since, REASON, silent=silent)
                state = state.with_worker(replace(worker, phase=phase).because("asked"))
            case Retiring() | Leaving():
                pass  # it goes already
            case _:
                return _refuse(state, ticket, "It boots, and has nothing to finish; `worker kill` ends it.")
        return state, [Answer(ticket, {"status": "draining", "pid": worker.pid})]


class Kill(ControlRequest):
    """Sends TERM to a worker, which is replaced."""

    word: ClassVar[str] = "kill"
    takes: ClassVar[tuple[str, ...]] = ("pid",)
    while_stopping: ClassVar[bool] = True
    nr: int

    @classmethod
    def parse(cls, arguments: Arguments) -> Kill:
        return cls(arguments.worker("pid"))

    def decide(self, state: State, ticket: int, now: float) -> Decision:
        worker = state.workers.get(self.nr)
        if worker is None:
            return _refuse(state, ticket, "There is no such worker any more.")
        state, commands = leaving.leave(state, worker.because("asked"), Signals.SIGTERM, now)
        return state, [*commands, Answer(ticket, {"killed": worker.pid})]


class SetReadiness(ControlRequest):
    """Sets whether readiness is answered with 200, for load balancers; requests are served in any case."""

    word: ClassVar[str] = "ready"
    takes: ClassVar[tuple[str, ...]] = ("on",)
    on: bool

    @classmethod
    def parse(cls, arguments: Arguments) -> SetReadiness:
        return cls(arguments.flag("on", needed=True))

    def decide(self, state: State, ticket: int, now: float) -> Decision:
        state = replace(state, unready=not self.on)
        nrs = tuple(worker.nr for worker in state.workers.values() if not isinstance(worker.phase, Leaving))
        denied = 'Reporting "not ready" until `ready on`; still serving requests.'
        text = "Reporting the actual readiness again." if self.on else denied
        # Those that leave answer for the server until they have gone; what they were ordered besides stays.
        leave = [leaving.order(state, each) for each in state.workers.values() if _has_term(each)]
        unready = state.is_unready
        return state, [Log("info", text), Order(nrs, not_ready=unready), *leave, Answer(ticket, {"ready": not unready})]


def _has_term(worker: Worker) -> bool:
    return isinstance(worker.phase, Leaving) and worker.phase.sent_signal is Signals.SIGTERM


class Reopen(ControlRequest):
    """Opens the log files again, as USR1 does."""

    word: ClassVar[str] = "reopen"
    while_stopping: ClassVar[bool] = True

    def decide(self, state: State, ticket: int, now: float) -> Decision:
        return _answer_first(signals.reopen(state, now), ticket, "reopening")


class UpgradeServer(ControlRequest):
    """Starts a successor of the whole server, as USR2 does."""

    word: ClassVar[str] = "upgrade"

    def decide(self, state: State, ticket: int, now: float) -> Decision:
        if state.successor is not None:
            return _refuse(state, ticket, f"There is a successor already (pid {state.successor}).")
        return _answer_first(signals.upgrade(state), ticket, "upgrading")


class Shutdown(ControlRequest):
    """Ends the server, as TERM or (quick) INT does."""

    word: ClassVar[str] = "shutdown"
    takes: ClassVar[tuple[str, ...]] = ("quick",)
    while_stopping: ClassVar[bool] = True
    quick: bool = False

    @classmethod
    def parse(cls, arguments: Arguments) -> Shutdown:
        return cls(arguments.flag("quick"))

    def decide(self, state: State, ticket: int, now: float) -> Decision:
        return _answer_first(signals.end(state, now, quick=self.quick), ticket, "shutting_down")


def _refuse(state: State, ticket: int, sentence: str, kind: Kind = "refused") -> Decision:
    return state, [Refuse(ticket, kind, sentence)]


def _answer_first(decision: Decision, ticket: int, status: str) -> Decision:
    """The answer comes before the commands: the last of them may be the end."""
    state, commands = decision
    answer: Command = Answer(ticket, {"status": status})
    return state, [answer, *commands]


REASON = "requested by operator"

ALL: tuple[type[ControlRequest], ...] = (
    ReloadAll,
    Scale,
    Drain,
    Kill,
    SetReadiness,
    Reopen,
    UpgradeServer,
    Shutdown,
)
