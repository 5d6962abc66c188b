"""Dispatches control requests: queries are answered at once, workers are asked, and changes become events."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from tricorn.arbiter.control.inquiries import DEFECT, Inquiries, Inquiry, tell_level
from tricorn.arbiter.control.listener import Client, ControlListener
from tricorn.arbiter.control.waits import Waits, has_to_wait
from tricorn.arbiter.parts import Parts
from tricorn.arbiter.policy.arguments import Arguments, Refusal
from tricorn.arbiter.policy.commands import Answer, Command, Refuse
from tricorn.arbiter.policy.events import ControlRequest, Event, Requested, Told
from tricorn.arbiter.policy.state import State
from tricorn.record import Record
from tricorn.unpatched import select, time
from tricorn.workers.messages import Ready

if TYPE_CHECKING:
    from tricorn.arbiter.control.commands import Query
    from tricorn.arbiter.control.session import Answered, Broken, Request

Json = dict[str, object]

MAX_LOGGED = 200
SLICE = 0.0005
"""Seconds of a turn after which no other request is taken: the loop looks at the workers before."""


class Ticket(Record):
    """A request that is answered later."""

    client: Client
    request: Request
    has_to_wait: bool = False
    """The policy's answer begins the wait for the one that is sent."""


class Dispatcher:
    def __init__(self, listener: ControlListener, parts: Parts) -> None:
        self.listener = listener
        self.inquiries = Inquiries(parts, self._reply)
        self._parts = parts
        self._waits = Waits()
        self._tickets: dict[int, Ticket] = {}
        self._last = 0

    # The loop

    def register(self, poll: select.poll, now: float) -> float:
        """Returns when to take a turn though no descriptor is ready."""
        self.listener.register(poll)
        return self.listener.due(now)

    def turn(self, ready: Container[int], state: State, now: float) -> list[Event]:
        """Takes requests of clients; returns those that the policy decides on."""
        events: list[Event] = []
        end = time.monotonic() + SLICE
        for client, request in self.listener.turn(ready, now):
            event = self._try(client, request, state, now)
            if event is not None:
                events.append(event)
            if time.monotonic() >= end:
                break
        gone = frozenset(self.listener.take_gone())
        if gone:
            self._forget([number for number, each in self._tickets.items() if each.client.number in gone])
        return events

    def answer(self, command: Answer | Refuse) -> None:
        """Sends the policy's answer, unless the client wants to wait until it is done."""
        ticket = self._tickets.get(command.ticket)
        if ticket is not None and (isinstance(command, Refuse) or not ticket.has_to_wait):
            self._deliver(command)

    def announce_decision(self, before: State, event: Event, after: State, commands: Sequence[Command]) -> None:
        """Tells clients that follow, and a worker that begins to serve the level of the log that was set meanwhile."""
        match event:
            case Told(nr, Ready()) if nr in after.workers:
                tell_level(self._parts, nr, after.workers[nr].generation)
        if any(client.follows for client in self.listener.clients.values()):
            from tricorn.arbiter.control.events import events  # for the few servers that are followed

            for each in events(before, event, after, commands):
                self.announce(each)

    def announce(self, event: Json) -> None:
        """Sends an event to the clients that follow."""
        for client in [client for client in self.listener.clients.values() if client.follows]:
            self.listener.send(client, event)

    def end_waits(self, before: State, event: Event, after: State, commands: Sequence[Command]) -> None:
        """Answers clients that waited for a decision, once its commands have been performed."""
        with self._parts.processes.guard("Could not answer a control request"):
            for command in self._waits.after(before, event, after, commands):
                self._deliver(command)

    # Requests

    def _try(self, client: Client, request: Request | Answered | Broken, state: State, now: float) -> Requested | None:
        """Does as `_take`. An exception is logged, and the client is told of it."""
        try:
            return self._take(client, request, state, now)
        except Exception:  # what is told of the server is no reason to end it
            from tricorn.arbiter.control.session import Request

            self._parts.generation.log.exception("Could not answer a control request (this is a defect of tricorn).")
            if isinstance(request, Request):
                self._send(client, request, {"ok": False, "kind": "failed", "error": DEFECT})
        return None

    def _take(self, client: Client, request: Request | Answered | Broken, state: State, now: float) -> Requested | None:
        """Answers the request, or returns the event for the policy."""
        from tricorn.arbiter.control import commands
        from tricorn.arbiter.control.session import Answered, Broken

        match request:
            case Broken(sentence):
                error = f"This is no request: {sentence}."
                self.listener.send(client, {"id": None, "ok": False, "kind": "refused", "error": error})
                self.listener.end(client)
                return None
            case Answered(identity, answer):
                self.listener.send(client, {"id": identity, **answer})
                return None
        try:
            match commands.parse(Arguments(request.word, request.arguments, self._find, self._all)):
                case commands.Query() as query:
                    result, descriptors = self._look_up(query, state, now)
                    self._send(client, request, {"ok": True, "result": result}, descriptors)
                case commands.Follow():
                    client.follows = True
                    self._send(client, request, {"ok": True, "result": {}})
                case Inquiry() as inquiry:
                    self._permit(client, request)
                    nrs = self.inquiries.admit(inquiry, state, now)
                    self._log(client, request)
                    self.inquiries.begin(inquiry, nrs, self._ticket(Ticket(client, request)), now)
                case ControlRequest() as change:
                    self._permit(client, request)
                    self._log(client, request)
                    return Requested(self._ticket(Ticket(client, request, has_to_wait(change))), change)
        except Refusal as refusal:
            self._send(client, request, refusal.answer)
        return None

    def _permit(self, client: Client, request: Request) -> None:
        """Raises Refusal if the client may only look."""
        generation = self._parts.generation
        if generation.config.control_read_only and not client.peer.is_owner:
            asks = f"Control: {client.peer} requested: {_described(request)}"
            generation.log.warning("%s; denied (control_read_only)", asks)
            raise Refusal("denied", f"{client.peer} may only look (control_read_only).")

    def _log(self, client: Client, request: Request) -> None:
        self._parts.generation.log.info("Control: %s requested: %s", client.peer, _described(request))

    def _all(self) -> tuple[int, ...]:
        handles = self._parts.processes.handles.values()
        return tuple(handle.nr for handle in sorted(handles, key=lambda each: each.worker.slot))

    def _find(self, by: str, value: int) -> int | None:
        for handle in self._parts.processes.handles.values():
            if value == (handle.pid if by == "pid" else handle.worker.slot):
                return handle.nr
        return None

    def _look_up(self, query: Query, state: State, now: float) -> tuple[Json, tuple[int, ...]]:
        from tricorn.arbiter.control import report

        if query.look != "pages":
            return report.answer(query, state, self._parts, now), ()
        result, descriptors = report.pages(state, self._parts)
        if min(descriptors) < 0:
            raise Refusal("refused", "The pages cannot be sealed here (Linux 5.1 can), so none are handed out.")
        return result, descriptors

    # Answers

    def _ticket(self, ticket: Ticket) -> int:
        self._last += 1
        self._tickets[self._last] = ticket
        ticket.client.waits += 1
        return self._last

    def _forget(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            del self._tickets[number]
        self._waits.forget(numbers)
        self.inquiries.abandon(numbers)

    def _deliver(self, command: Answer | Refuse) -> None:
        match command:
            case Answer(number, result):
                self._reply(number, {"ok": True, "result": dict(result)})
            case Refuse(number, kind, sentence):
                self._reply(number, {"ok": False, "kind": kind, "error": sentence})

    def _reply(self, number: int, answer: Json) -> None:
        ticket = self._tickets.pop(number, None)
        if ticket is not None:  # else the client has left
            ticket.client.waits -= 1
            self._send(ticket.client, ticket.request, answer)

    def _send(self, client: Client, request: Request, answer: Json, descriptors: tuple[int, ...] = ()) -> None:
        self.listener.send(client, {"id": request.id, **request.translate(answer)}, descriptors)


def _described(request: Request) -> str:
    """Describes a request for the log: it is a client's text."""
    words = [_printable(request.word)]
    for name, value in request.arguments.items():
        if isinstance(value, bool):
            words.append(name if value else f"{name}=off")
        elif value != []:
            words.append(_printable(str(value)))
    return " ".join(words)[:MAX_LOGGED]


def _printable(text: str) -> str:
    return text if text.isascii() and text.isprintable() else ascii(text)
