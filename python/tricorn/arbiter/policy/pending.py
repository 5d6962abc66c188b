"""Answers that are given later: when a reload has ended, a worker is gone, or has written what was asked for."""

from __future__ import annotations

from tricorn.arbiter.policy.commands import (
    Answer,
    AskForStacks,
    Command,
    OrderCancel,
    OrderProfile,
    Refuse,
    TellCancelled,
    TellProfile,
    TellStacks,
)
from tricorn.arbiter.policy.state import Awaited, Decision, Pending, State
from tricorn.arbiter.policy.wishes import Cancel, Profile
from tricorn.arbiter.policy.worker import Worker
from tricorn.record import replace


def wait_for_reload(state: State, ticket: int, *, later: bool) -> State:
    """`later`: not for the reload that is under way, but for the one after it."""
    return replace(state, pending=(*state.pending, Pending(ticket, later=later)))


def wait_for_end(state: State, ticket: int, nr: int) -> State:
    return replace(state, pending=(*state.pending, Pending(ticket, nr)))


def reload_ended(state: State, reason: str | None) -> Decision:
    """`reason`: why it was refused or rolled back; None if it was committed."""
    commands: list[Command] = []
    left = []
    for each in state.pending:
        if each.nr is not None:
            left.append(each)
        elif each.later:
            left.append(replace(each, later=False))
        elif reason is None:
            commands.append(Answer(each.ticket, {"generation": state.generation, "workers": state.target}))
        else:
            commands.append(Refuse(each.ticket, "refused", reason))
    return replace(state, pending=tuple(left)), commands


def worker_ended(state: State, worker: Worker, status: int) -> Decision:
    """`status` is the exit status, or a negative signal: a worker that does not leave in time is killed."""
    nr, word = worker.nr, "drained" if status == 0 else "ended"
    result = {"status": word, "pid": worker.pid, "exit_status": status}
    commands: list[Command] = [Answer(each.ticket, result) for each in state.pending if each.nr == nr]
    return replace(state, pending=tuple(each for each in state.pending if each.nr != nr)), commands


def server_stops(state: State) -> Decision:
    """No reload will end. Workers do."""
    reloads = [each for each in state.pending if each.nr is None]
    commands: list[Command] = [Refuse(each.ticket, "refused", "The server was told to stop.") for each in reloads]
    return replace(state, pending=tuple(each for each in state.pending if each.nr is not None)), commands


def wait_for_stacks(state: State, ticket: int, nrs: tuple[int, ...], now: float) -> Decision:
    state = replace(state, stacks=(*state.stacks, Awaited(ticket, nrs, now + WRITTEN)))
    return state, [AskForStacks(nrs)]


def tell_stacks(state: State, now: float) -> Decision:
    """Of those whose time has come."""
    due = [each for each in state.stacks if now >= each.at]
    if not due:
        return state, []
    state = replace(state, stacks=tuple(each for each in state.stacks if now < each.at))
    return state, [TellStacks(each.ticket, each.nrs) for each in due]


def wait_for_profile(state: State, ticket: int, wish: Profile, nrs: tuple[int, ...], now: float) -> Decision:
    if state.profile is not None:
        text = f"A profile is being taken, for {max(0.0, state.profile.at - now):.1f} seconds more; ask again then."
        return state, [Refuse(ticket, "busy", text)]
    state = replace(state, profile=Awaited(ticket, nrs, now + wish.seconds + WRITTEN))
    return state, [OrderProfile(nrs, wish.seconds, wish.rate)]


def tell_profile(state: State, now: float) -> Decision:
    """If its time has come."""
    profile = state.profile
    if profile is None or now < profile.at:
        return state, []
    return replace(state, profile=None), [TellProfile(profile.ticket, profile.nrs)]


def wait_for_cancel(state: State, ticket: int, wish: Cancel, now: float) -> Decision:
    if any(wish.nr in each.nrs for each in state.cancels):
        text = "This worker is about to cancel another request; ask again in a second."
        return state, [Refuse(ticket, "busy", text)]
    state = replace(state, cancels=(*state.cancels, Awaited(ticket, (wish.nr,), now + HEARD)))
    return state, [OrderCancel(wish.nr, wish.place, wish.start)]


def tell_cancelled(state: State, now: float) -> Decision:
    """Of those whose time has come."""
    due = [each for each in state.cancels if now >= each.at]
    if not due:
        return state, []
    state = replace(state, cancels=tuple(each for each in state.cancels if now < each.at))
    return state, [TellCancelled(each.ticket, nr) for each in due for nr in each.nrs]


HEARD = 1.0
"""Seconds within which a monitor looks for the order, several times; it waits for no Python."""

WRITTEN = 0.3
"""Seconds in which a signal handler in C, or the sampler, has written; neither waits for the GIL."""


def forgotten(state: State, tickets: tuple[int, ...]) -> Decision:
    """The client has left. Its profile ends: another client may want one."""
    state = replace(state, pending=tuple(each for each in state.pending if each.ticket not in tickets))
    profile = state.profile
    if profile is None or profile.ticket not in tickets:
        return state, []
    return replace(state, profile=None), [OrderProfile(profile.nrs, 0.0)]
