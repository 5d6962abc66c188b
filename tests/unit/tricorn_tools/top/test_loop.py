"""The screen is kept up to date, keys are obeyed, and a server that ends is waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tricorn.control.client import NoAnswer, NoServer, Refused
from tricorn_tools.top.keys import View
from tricorn_tools.top.look import Look
from tricorn_tools.top.loop import Live, outcome
from tricorn_tools.top.screen import Line

from tests.unit.tricorn_tools.top.made import busy_shop


class Typist:
    """A terminal: a key after each drawing. Its clock goes on by a second whenever none is pressed."""

    def __init__(self, *typed: str | None) -> None:
        self.keys, self.now = list(typed), 0.0
        self.drawn: list[str] = []

    def size(self) -> tuple[int, int]:
        return 100, 24

    def draw(self, lines: Sequence[Line]) -> None:
        self.drawn.append("\n".join("".join(span.text for span in line).rstrip() for line in lines))

    def key(self, seconds: float) -> str | None:
        key = self.keys.pop(0) if self.keys else "q"
        self.now += seconds if key is None else 0.0
        return key

    def said(self) -> list[str]:
        return [screen.splitlines()[-2] for screen in self.drawn if screen.count("\n") > 1]


class Shop:
    """Looked at: two looks, and then the last again; what is put into `fails` is raised instead."""

    def __init__(self, **answers: Any) -> None:
        self.looks = list(busy_shop())
        self.answers = answers
        self.asked: list[tuple[str, dict[str, object]]] = []
        self.fails: list[Exception | None] = []
        self.routes: list[bool] = []
        """Whether they were asked for, with each look."""
        self.is_closed = False

    def look(self, *, routes: bool = False) -> Look:
        self.routes.append(routes)
        failure = self.fails.pop(0) if self.fails else None
        if failure is not None:
            raise failure
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def ask(self, word: str, arguments: Mapping[str, object]) -> Any:
        self.asked.append((word, dict(arguments)))
        answer = self.answers.get(word, {})
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.is_closed = True


def run(shop: Shop, typist: Typist, *later: Shop | Exception) -> int:
    waiting = list(later)

    def connect() -> Any:
        found = waiting.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    live = Live(connect, shop, 1.0, View())  # type: ignore[arg-type]
    return live.run(typist, clock=lambda: typist.now)


def test_an_interval_later_there_are_rates() -> None:
    typist = Typist(None, "x", "q")
    assert run(Shop(), typist) == 0
    assert "- req/s" in typist.drawn[0]
    assert "891 req/s" in typist.drawn[1]
    assert typist.drawn[1] == typist.drawn[2], "a key asks the server for nothing"


def test_routes_are_asked_for_while_they_are_shown() -> None:
    shop, typist = Shop(), Typist(None, "l", None, "l", None, "q")
    run(shop, typist)
    assert shop.routes == [False, False, True, True, False]


def test_an_action_is_done_when_it_was_agreed_to() -> None:
    shop, typist = Shop(scale={"previous": 1, "workers": 2}), Typist(None, "R", "n", "+", "y")
    run(shop, typist)
    assert shop.asked == [("scale", {"workers": "+1"})]
    assert typist.said()[2:] == [
        "reload configuration and code? (y/n)",
        "nothing changed",
        "add a worker? (y/n)",
        "scale: from 1 to 2 workers",
    ]


def test_what_came_of_an_action_is_said() -> None:
    note = "tricorn.RequestCancelled is raised in it."
    assert outcome("cancel", {"status": "cancelled", "note": note}) == f"cancelling the request. {note}"
    assert outcome("drain", {"status": "draining", "pid": 7}) == "replacing the worker with pid 7"
    assert outcome("reload", {"status": "reloading"}).startswith("starting new workers")


def test_what_the_server_refuses_is_said_in_its_words() -> None:
    shop, typist = Shop(scale=Refused("denied", "uid 33 may not\x1b")), Typist(None, "-", "y")
    run(shop, typist)
    assert typist.said()[-1] == "scale: uid 33 may not?"
    assert not shop.is_closed


def test_a_word_that_the_server_does_not_know_is_named() -> None:
    shop, typist = (
        Shop(stacks=Refused("unknown", "Unknown command 'stacks'. Known commands: …")),
        Typist("down", "enter"),
    )
    run(shop, typist)
    assert typist.said()[-1] == "stacks: not supported by this server"


def test_stacks_take_the_place_of_the_table() -> None:
    main = {"main": True, "name": None, "thread": "0x7f", "stack": ['File "shop.py", line 3 in slow\x1b[1m']}
    other = {"main": False, "name": "pool", "thread": "0x80", "stack": ["File a", "File b"]}
    busy = {"slot": 1, "pid": 7, "threads": [main, other], "requests": [{"age": 3.21, "text": "GET /\x1b"}]}
    answer = {"workers": [busy, {"slot": 2, "pid": 8, "threads": [], "requests": []}]}
    shop, typist = Shop(stacks=answer), Typist(None, "down", "enter", "escape")
    run(shop, typist)
    assert shop.asked == [("stacks", {"slot": 1})]
    shown = """
worker 1 (pid 7)
  3.2 s  GET /?
  main thread 0x7f:
    File "shop.py", line 3 in slow?[1m
  thread pool:
    File a
    File b
worker 2 (pid 8): idle
"""
    assert shown in typist.drawn[3]
    assert "main thread" not in typist.drawn[4]


def test_a_server_that_ends_leaves_its_screen_and_another_one_is_found() -> None:
    gone, new = Shop(), Shop()
    gone.fails = [None, NoAnswer("The server has closed the connection.")]
    typist = Typist(None, "+", "y", None, None, "q")
    assert run(gone, typist, NoServer("No server answers."), new) == 0
    said = typist.said()
    assert gone.is_closed
    assert "The server has closed the connection. Trying again. The screen shows the last state." in typist.drawn[1]
    assert "  1    4712 gthread" in typist.drawn[1]
    assert "not connected to a server" in said
    assert "No server answers. Looking for a server. The screen shows the last state." in said
    assert said[-1] == "reconnected"
    assert new.asked == []


def test_without_a_first_look_the_reason_stands_alone() -> None:
    shop, typist = Shop(), Typist("down", "q")
    shop.fails = [NoAnswer("It did not answer within 5 seconds.")]
    run(shop, typist)
    assert typist.drawn[0] == "It did not answer within 5 seconds. Trying again."
