"""Who may ask for what, and in which order that is looked at."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.control import dispatcher as dispatchers
from tricorn.arbiter.control.dispatcher import Dispatcher
from tricorn.arbiter.control.listener import Peer
from tricorn.arbiter.control.session import Request
from tricorn.arbiter.policy.state import State
from tricorn.unpatched import os

from tests.unit.arbiter.policy.support import QUIET

STATE = State(1, QUIET)


class Listener:
    def __init__(self, *requests: Request, uid: int) -> None:
        self.client = SimpleNamespace(number=1, follows=False, waits=0, peer=Peer(uid, 1))
        self.clients = {1: self.client}
        self.requests = [(self.client, request) for request in requests]
        self.sent: list[dict[str, Any]] = []

    def turn(self, ready: object, now: float) -> list[Any]:
        return self.requests

    def take_gone(self) -> list[int]:
        return []

    def send(self, client: object, message: dict[str, Any], descriptors: object = ()) -> None:
        self.sent.append(message)


def parts(*, read_only: bool) -> Any:
    log = SimpleNamespace(warning=lambda *_: None, info=lambda *_: None)
    config = SimpleNamespace(control_read_only=read_only)
    worker = SimpleNamespace(slot=1, spec=SimpleNamespace(config=SimpleNamespace(request_timeout=60)))
    running = SimpleNamespace(slot=2, started=77)
    ordered: list[tuple[int, int]] = []
    handle = SimpleNamespace(
        nr=1, pid=100, worker=worker, requests=lambda: [running], order_cancel=lambda *order: ordered.append(order)
    )
    processes = SimpleNamespace(
        handles={1: handle}, find=lambda nrs: [handle] if 1 in nrs else [], guard=lambda what: nullcontext()
    )
    return SimpleNamespace(generation=SimpleNamespace(config=config, log=log), processes=processes, ordered=ordered)


def asked(start: int, *, read_only: bool, uid: int) -> tuple[list[Any], list[dict[str, Any]]]:
    request = Request(1, "cancel", {"slot": 1, "place": 2, "start": start})
    listener = Listener(request, uid=uid)
    server = parts(read_only=read_only)
    assert Dispatcher(listener, server).turn((), STATE, 0.0) == []  # type: ignore[arg-type]
    return server.ordered, listener.sent


@pytest.mark.parametrize("start", [77, 78])
def test_who_may_only_look_is_not_told_whether_a_request_runs(start: int) -> None:
    orders, sent = asked(start, read_only=True, uid=os.geteuid() + 1)
    assert orders == []
    assert [answer["kind"] for answer in sent] == ["denied"]


def test_control_permission_to_act() -> None:
    for read_only, uid in ((True, os.geteuid()), (False, os.geteuid() + 1)):
        assert asked(77, read_only=read_only, uid=uid) == ([(2, 77)], [])
        orders, sent = asked(78, read_only=read_only, uid=uid)
        assert orders == []
        assert "it has ended" in sent[0]["error"]
    assert Peer(0, 1).is_owner


def test_a_turn_whose_time_is_over_takes_no_other_request(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, answered in ((60.0, 3), (0.0, 1)):
        monkeypatch.setattr(dispatchers, "SLICE", seconds)
        listener = Listener(*(Request(number, "nonsense", {}) for number in range(3)), uid=0)
        assert Dispatcher(listener, parts(read_only=False)).turn((), STATE, 0.0) == []  # type: ignore[arg-type]
        assert [answer["kind"] for answer in listener.sent] == ["unknown"] * answered


def test_a_defect_in_an_answer_is_told_and_the_next_request_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatchers, "SLICE", 60.0)
    listener = Listener(Request(1, "status", {}), Request(2, "nonsense", {}), uid=0)
    told: list[str] = []
    server = parts(read_only=False)  # has nothing of what a status names
    server.generation.log.exception = told.append
    assert Dispatcher(listener, server).turn((), STATE, 0.0) == []  # type: ignore[arg-type]
    assert [answer["kind"] for answer in listener.sent] == ["failed", "unknown"]
    assert len(told) == 1
