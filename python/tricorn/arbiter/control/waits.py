"""Answers that are given later, to `reload --wait` and `drain --wait`: when it is done, or cannot be. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence

from tricorn.arbiter.policy.commands import Answer, Command, Commit, Refuse, Rollback
from tricorn.arbiter.policy.control_requests import Drain, ReloadAll
from tricorn.arbiter.policy.events import ChildExited, ControlRequest, Event, ReloadFailed, Requested
from tricorn.arbiter.policy.state import State
from tricorn.record import Record, replace


class Wait(Record):
    ticket: int
    nr: int | None = None
    """Waits for the end of this worker; None: for that of a reload."""
    later: bool = False
    """Waits for the reload after the one that was under way when it was requested."""


def has_to_wait(request: ControlRequest) -> bool:
    return isinstance(request, ReloadAll | Drain) and request.wait


class Waits:
    def __init__(self) -> None:
        self._waits: tuple[Wait, ...] = ()

    def __len__(self) -> int:
        return len(self._waits)

    def forget(self, tickets: Container[int]) -> None:
        """Drops the waits of clients that have disconnected."""
        self._waits = tuple(each for each in self._waits if each.ticket not in tickets)

    def after(self, before: State, event: Event, after: State, commands: Sequence[Command]) -> list[Answer | Refuse]:
        """Begins the wait that a decision has granted, and returns the answers to those that it has ended."""
        answers: list[Answer | Refuse] = []
        match event:
            case Requested(ticket, request) if has_to_wait(request) and _is_answered(ticket, commands):
                nr = request.nr if isinstance(request, Drain) else None
                self._waits = (*self._waits, Wait(ticket, nr, later=nr is None and before.is_reloading))
            case ChildExited(nr, status) if nr in before.workers:
                answers += self._end_of_worker(nr, before.workers[nr].pid, status)
        if before.stopping is None and after.stopping is not None:
            return answers + self._end_of_reload(after, "The server was told to stop.", is_last=True)
        return answers + self._after_reload(event, after, commands)

    def _after_reload(self, event: Event, after: State, commands: Sequence[Command]) -> list[Answer | Refuse]:
        if isinstance(event, ReloadFailed):
            return self._end_of_reload(after, event.reason)
        for command in commands:
            match command:
                case Commit():
                    return self._end_of_reload(after, None)
                case Rollback(_, reason):
                    return self._end_of_reload(after, reason)
        return []

    def _end_of_reload(self, state: State, reason: str | None, *, is_last: bool = False) -> list[Answer | Refuse]:
        """`reason`: why it was refused or rolled back; None if it was committed."""
        answers: list[Answer | Refuse] = []
        left = []
        for each in self._waits:
            if each.nr is not None:
                left.append(each)
            elif each.later and not is_last:
                left.append(replace(each, later=False))
            elif reason is None:
                answers.append(Answer(each.ticket, {"generation": state.generation, "workers": state.target}))
            else:
                answers.append(Refuse(each.ticket, "refused", reason))
        self._waits = tuple(left)
        return answers

    def _end_of_worker(self, nr: int, pid: int | None, status: int) -> list[Answer | Refuse]:
        """`status` is the exit status, or a negative signal: a worker that does not leave in time is killed."""
        result = {"status": "drained" if status == 0 else "ended", "pid": pid, "exit_status": status}
        ended = [each for each in self._waits if each.nr == nr]
        self._waits = tuple(each for each in self._waits if each.nr != nr)
        return [Answer(each.ticket, result) for each in ended]


def _is_answered(ticket: int, commands: Sequence[Command]) -> bool:
    return any(isinstance(each, Answer) and each.ticket == ticket for each in commands)
