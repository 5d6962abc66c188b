"""Messages between the arbiter and its molds survive the way, and rubbish is no message."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.hiring import Position
from tricorn.arbiter.molds.requests import (
    HasForked,
    Here,
    NotForked,
    Reply,
    Request,
    decode_reply,
    decode_request,
    encode_reply,
    encode_request,
    pickled,
)

POSITION = Position(7, 2, 12, 3, 40, siblings=True, stand_in=False)


@pytest.mark.parametrize("reply", [HasForked(7), Here(12), NotForked(3, "Resource temporarily unavailable")])
def test_replies_come_as_they_were_sent(reply: Reply) -> None:
    assert decode_reply(encode_reply(reply)) == reply


@pytest.mark.parametrize("data", [b"", b"here", b"here x", b"here -1", b"here " + b"9" * 40, b"gone 3", b"\xff \xff"])
def test_rubbish_is_no_reply(data: bytes) -> None:
    assert decode_reply(data) is None


def test_a_request_comes_as_it_was_sent() -> None:
    attributes, lost = pickled(
        {"age": 3, "log": 1}, {"age": 3, "log": 2, "mark": {"a": 1}, "open": os.getpid, "it": lambda: 0}
    )
    assert lost == ["it"]
    request = decode_request(encode_request(Request(POSITION, attributes, has_reports=True, has_bell=False)))
    assert request.position == POSITION
    assert request.descriptors == 2
    worker: Any = SimpleNamespace()
    request.apply(worker)
    assert (worker.log, worker.mark, worker.open) == (2, {"a": 1}, os.getpid)
    assert not hasattr(worker, "age")
