"""Where requests are answered: at once, of what is known; or by the policy, each by its ticket."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING

from tricorn.arbiter.control.listener import Client, ControlListener
from tricorn.arbiter.policy.commands import Command
from tricorn.arbiter.policy.events import Asked, ClientGone, Event
from tricorn.arbiter.policy.state import State
from tricorn.record import Record
from tricorn.unpatched import time

if TYPE_CHECKING:
    from tricorn.arbiter.control.session import Broken, Request
    from tricorn.arbiter.control.words import Read
    from tricorn.arbiter.effects import Effects
    from tricorn.arbiter.policy.wishes import Wish
    from tricorn.arbiter.worker_handle import WorkerHandle

Json = dict[str, object]

DEFECT = "This is a defect of tricorn: the server's log says more."
MOST_LOGGED = 200
SLICE = 0.0005
"""Seconds of a turn after which no other request is taken: the loop looks at the workers before."""


class Ticket(Record):
    """A request that the policy is to answer."""

    client: Client
    request: Request
    shape: Callable[[Mapping[str, object]], Mapping[str, object]]


class Desk:
    def __init__(self, listener: ControlListener, effects: Effects) -> None:
        self.listener = listener
        self._effects = effects
        self._tickets: dict[int, Ticket] = {}
        self._last = 0

    def turn(self, ready: Container[int], state: State, now: float) -> list[Event]:
        """One turn of the loop: what of the clients' requests the policy is to hear."""
        events: list[Event] = []
        end = time.monotonic() + SLICE
        for client, request in self.listener.turn(ready, now):
            asked = self._try(client, request, state, now)
            if asked is not None:
                events.append(asked)
            if time.monotonic() >= end:
                break
        gone = frozenset(self.listener.take_gone())
        if gone:
            tickets = tuple(number for number, each in self._tickets.items() if each.client.number in gone)
            for number in tickets:
                del self._tickets[number]
            events.append(ClientGone(tickets))
        return events

    def answer(self, ticket: int, answer: Json) -> None:
        """What the policy says."""
        found = self._tickets.pop(ticket, None)
        if found is None:
            return  # the client has left
        found.client.waits -= 1
        result = answer.get("result")
        if isinstance(result, Mapping):
            answer = {**answer, "result": found.shape(result)}
        self._send(found.client, found.request, answer)

    def tell_stacks(self, ticket: int, handles: Sequence[WorkerHandle]) -> None:
        from tricorn.arbiter.control.stacks import stacks

        self._conclude(ticket, lambda: {"ok": True, "result": stacks(handles)})

    def tell_profile(self, ticket: int, nrs: Sequence[int]) -> None:
        from tricorn.arbiter.control import profile

        handles = self._effects.processes.handles
        self._conclude(ticket, lambda: {"ok": True, "result": profile.answer(handles, nrs)})

    def tell_cancelled(self, ticket: int, handle: WorkerHandle | None) -> None:
        from tricorn.arbiter.control.cancel import answer

        # Taken in any case: an order must not stay when its client has left.
        self._conclude(ticket, lambda: answer(handle, None if handle is None else handle.take_cancelled()))

    def _conclude(self, ticket: int, make: Callable[[], Json]) -> None:
        """Answers with what is made of a worker's own words."""
        answer: Json = {"ok": False, "kind": "failed", "error": DEFECT}
        with self._effects.processes.guard("A control request has no answer"):
            answer = make()
        self.answer(ticket, answer)

    def announce(self, happening: Json) -> None:
        """To the clients that follow."""
        for client in [client for client in self.listener.clients.values() if client.follows]:
            self.listener.send(client, happening)

    def tell(self, before: State, event: Event, after: State, commands: Sequence[Command]) -> None:
        """What happens, to the clients that follow."""
        followers = [client for client in self.listener.clients.values() if client.follows]
        if not followers:
            return
        from tricorn.arbiter.control.happenings import happenings

        for happening in happenings(before, event, after, commands):
            for client in followers:
                self.listener.send(client, happening)

    def close(self) -> None:
        self.listener.close()

    def _try(self, client: Client, request: Request | Broken, state: State, now: float) -> Asked | None:
        """As `_take`. An exception is logged, and the client is told of it."""
        try:
            return self._take(client, request, state, now)
        except Exception:  # what is told of the server is no reason to end it
            from tricorn.arbiter.control.session import Broken

            self._effects.generation.log.exception("A control request has no answer (this is a defect of tricorn).")
            if not isinstance(request, Broken):
                self._send(client, request, {"ok": False, "kind": "failed", "error": DEFECT})
        return None

    def _take(self, client: Client, request: Request | Broken, state: State, now: float) -> Asked | None:
        """Answers it, unless the policy is to."""
        from tricorn.arbiter.control import profile
        from tricorn.arbiter.control.cancel import check
        from tricorn.arbiter.control.session import Broken
        from tricorn.arbiter.control.words import Follow, Read, Refusal, meaning
        from tricorn.arbiter.policy.wishes import Cancel, Profile

        if isinstance(request, Broken):
            sentence = f"This is no request: {request.sentence}."
            self.listener.send(client, {"id": None, "ok": False, "kind": "refused", "error": sentence})
            self.listener.end(client)
            return None
        if request.gunicorn:
            return self._take_gunicorns(client, request, state, now)
        try:
            match meaning(request, self._find, self._all):
                case Read() as read:
                    result, descriptors = self._look(read, state, now)
                    self._send(client, request, {"ok": True, "result": result}, descriptors)
                case Follow():
                    client.follows = True
                    self._send(client, request, {"ok": True, "result": {}})
                case Cancel() as wish:
                    # First: whether the request runs is an answer, too.
                    self._permit(client, request)
                    check(self._effects.processes.handles.get(wish.nr), wish)
                    return self._ask(client, request, wish)
                case wish:
                    if isinstance(wish, Profile):
                        profile.check(self._effects.generation.config)
                    return self._ask(client, request, wish)
        except Refusal as refusal:
            self._send(client, request, {"ok": False, "kind": refusal.kind, "error": str(refusal)})
        return None

    def _take_gunicorns(self, client: Client, request: Request, state: State, now: float) -> Asked | None:
        from tricorn.arbiter.control import gunicorn
        from tricorn.arbiter.control.words import Refusal

        try:
            match gunicorn.meaning(request, state, self._effects, now):
                case gunicorn.Known(data):
                    self._send(client, request, {"ok": True, "result": data})
                case gunicorn.Wanted(wish, shape):
                    return self._ask(client, request, wish, shape)
        except (Refusal, ValueError) as error:
            self._send(client, request, {"ok": False, "error": str(error)})
        return None

    def _ask(
        self,
        client: Client,
        request: Request,
        wish: Wish,
        shape: Callable[[Mapping[str, object]], Mapping[str, object]] = dict,
    ) -> Asked:
        self._permit(client, request)
        self._effects.generation.log.info("Control: %s asks: %s", client.peer, _described(request))
        self._last += 1
        self._tickets[self._last] = Ticket(client, request, shape)
        client.waits += 1
        return Asked(self._last, wish)

    def _permit(self, client: Client, request: Request) -> None:
        """Raises Refusal if the client may only look."""
        from tricorn.arbiter.control.words import Refusal

        generation = self._effects.generation
        if generation.config.control_read_only and not client.peer.is_owner:
            told = f"Control: {client.peer} asks: {_described(request)}"
            generation.log.warning("%s; denied (control_read_only)", told)
            raise Refusal("denied", f"{client.peer} may only look (control_read_only).")

    def _all(self) -> tuple[int, ...]:
        handles = self._effects.processes.handles.values()
        return tuple(handle.nr for handle in sorted(handles, key=lambda each: each.worker.slot))

    def _find(self, by: str, value: int) -> int | None:
        for handle in self._effects.processes.handles.values():
            if value == (handle.pid if by == "pid" else handle.worker.slot):
                return handle.nr
        return None

    def _send(self, client: Client, request: Request, answer: Json, descriptors: tuple[int, ...] = ()) -> None:
        if request.gunicorn:
            is_done = answer["ok"] is True
            said: Json = {"data": answer["result"]} if is_done else {"error": answer["error"]}
            answer = {"status": "ok" if is_done else "error", **said}
        self.listener.send(client, {"id": request.id, **answer}, descriptors)

    def _look(self, read: Read, state: State, now: float) -> tuple[Json, tuple[int, ...]]:
        from tricorn.arbiter.control import report
        from tricorn.arbiter.control.words import Refusal

        if read.look != "pages":
            return self._tell_of(read, state, now), ()
        answer, descriptors = report.pages(state, self._effects)
        if min(descriptors) < 0:
            raise Refusal("refused", "The pages cannot be sealed here (Linux 5.1 can), so none are handed out.")
        return answer, descriptors

    def _tell_of(self, read: Read, state: State, now: float) -> Json:
        from tricorn.arbiter.control import report, slow
        from tricorn.arbiter.control.words import Refusal

        effects = self._effects
        match read.look:
            case "status":
                return report.status(state, effects, now, brief=read.brief)
            case "workers":
                return report.workers(state, effects, now, brief=read.brief)
            case "listeners":
                return report.listeners(effects)
            case "stats":
                return report.stats(state, effects, now)
            case "requests":
                return report.requests(effects, read.older)
            case "routes":
                return report.routes(effects)
            case "slow":
                return slow.slow(list(effects.processes.handles.values()))
            case "config":
                return report.config(effects, only_changed=read.changed)
            case "stalls":
                return report.stalls(effects, read.since, records=read.records)
        if reason := report.ailment(state):
            raise Refusal("refused", reason)
        return {"healthy": True}


def _described(request: Request) -> str:
    """For a line of the log: it is a client's text."""
    words = [_printable(request.word)]
    for name, value in request.arguments.items():
        if isinstance(value, bool):
            words.append(name if value else f"{name}=off")
        elif value != []:
            words.append(_printable(str(value)))
    return " ".join(words)[:MOST_LOGGED]


def _printable(text: str) -> str:
    return text if text.isascii() and text.isprintable() else ascii(text)
