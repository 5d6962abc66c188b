"""The screen kept up to date, and keys obeyed, until the person at the keyboard has seen enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tricorn.control.client import ControlError, NoAnswer, Refused
from tricorn.record import replace
from tricorn_tools.top import change, keys, screen
from tricorn_tools.top.keys import Ask, Quit, Rows, View
from tricorn_tools.top.look import Look, harmless
from tricorn_tools.top.screen import Line, Scene
from tricorn_tools.top.source import Source

FIRST = 0.3
"""Seconds between the first two looks, before which there are no rates."""


MOST_LINE = 400
"""Characters of a line of a stack."""


class Screen(Protocol):
    def size(self) -> tuple[int, int]: ...
    def draw(self, lines: Sequence[Line]) -> None: ...
    def key(self, seconds: float) -> str | None: ...


class Live:
    """Live view of a server, updated at an interval. Another server may take its place."""

    def __init__(self, connect: Callable[[], Source], source: Source, interval: float, view: View) -> None:
        self._connect = connect
        self._source: Source | None = source
        self._interval = interval
        self._view = view
        self._before: Look | None = None
        self.scene: Scene | None = None

    def run(self, terminal: Screen, clock: Callable[[], float] = time.monotonic) -> int:
        due, wait = clock(), min(self._interval, FIRST)
        while True:
            if clock() >= due:
                due, wait = clock() + wait, self._interval
                self.look()
            self.draw(terminal)
            key = terminal.key(max(due - clock(), 0.0))
            if key is not None and not self.press(key):
                return 0

    def look(self) -> None:
        try:
            if self._source is None:
                self._source, self._before = self._connect(), None
                self._say("reconnected")
            look = self._source.look(routes=self._view.shows_routes)
        except ControlError as error:
            self._lost(error)
            return
        changes = change.between(self._before, look)
        self._before = look
        self.scene = Scene(look, changes, self._view)
        if changes.happened:
            self._say("; ".join(changes.happened))

    def draw(self, terminal: Screen) -> None:
        if self.scene is not None:
            self.scene = replace(self.scene, view=self._view)
            terminal.draw(screen.render(self.scene, *terminal.size()))
        else:
            terminal.draw([(screen.Span(self._view.message or "waiting for the server"),)])

    def press(self, key: str) -> bool:
        """Whether to go on."""
        rows = screen.rows_of(self.scene) if self.scene else Rows((), ())
        had_routes = self._view.shows_routes
        self._view, action = keys.press(self._view, key, rows)
        if self._view.shows_routes and not had_routes:
            self.look()  # they were not asked for before
        match action:
            case Quit():
                return False
            case Ask():
                self._ask(action)
        return True

    def _ask(self, ask: Ask) -> None:
        if self._source is None:
            self._say("not connected to a server", is_bad=True)
            return
        try:
            answer = self._source.ask(ask.word, ask.arguments)
        except Refused as refusal:
            reason = "not supported by this server" if refusal.kind == "unknown" else harmless(refusal)
            self._say(f"{ask.word}: {reason}", is_bad=True)
        except ControlError as error:
            self._lost(error)
        else:
            if ask.word == "stacks":
                self._view = replace(self._view, pane=stacks(answer), scroll=0)
            else:
                self._say(f"{ask.word}: {harmless(outcome(ask.word, answer), MOST_LINE)}")

    def _lost(self, error: ControlError) -> None:
        """A connection without an answer may still get one later: that is another one's by then."""
        if self._source is not None:
            self._source.close()
        self._source = None
        kept = "" if self.scene is None else " The screen shows the last state."
        hint = "Trying again." if isinstance(error, NoAnswer) else "Looking for a server."
        self._say(f"{harmless(error)} {hint}{kept}", is_bad=True)

    def _say(self, sentence: str, *, is_bad: bool = False) -> None:
        self._view = replace(self._view, message=sentence, is_bad=is_bad)


def outcome(word: str, answer: dict[str, Any]) -> str:
    """Describes the result of an action."""
    match word:
        case "cancel":
            return f"cancelling the request. {answer.get('note', '')}".rstrip()
        case "scale":
            return f"from {answer.get('previous')} to {answer.get('workers')} workers"
        case "drain":
            return f"replacing the worker with pid {answer.get('pid')}"
    return "starting new workers, see the list"


def stacks(answer: dict[str, Any]) -> tuple[str, ...]:
    """Formats the answer to `stacks`."""
    lines: list[str] = []
    for worker in answer["workers"]:
        is_idle = not (worker["threads"] or worker.get("waiting"))
        idle = ": idle" if is_idle else ""
        lines.append(f"worker {worker['slot']} (pid {worker['pid']}){idle}")
        lines += [f"  {request['age']:.1f} s  {request['text']}" for request in worker["requests"]]
        for thread in worker["threads"]:
            lines.append(f"  {'main thread' if thread['main'] else 'thread'} {thread['name'] or thread['thread']}:")
            lines += [f"    {frame}" for frame in thread["stack"]]
        for each in worker.get("waiting") or ():
            name = each["name"] if each["place"] is None else f"{worker['slot']}.{each['place']} {each['text'] or ''}"
            lines.append(f"  {each['of']} {name}{', running' if each['running'] else ''}:")
            lines += [f"    {frame}" for frame in each["stack"]]
        if worker.get("note"):
            lines.append(f"  {worker['note']}")
    return tuple(harmless(line, MOST_LINE) for line in lines)
