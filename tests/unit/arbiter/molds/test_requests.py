"""Messages between the arbiter and its molds survive the way, and rubbish is no message."""

from __future__ import annotations

import os
import socket
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
    open_requests,
    pickled,
    receive_promotion,
    send_promotion,
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
    sent = Request(POSITION, attributes, has_reports=True, has_bell=False, has_requests=False)
    request = decode_request(encode_request(sent))
    assert request.position == POSITION
    assert request.descriptors == 2
    worker: Any = SimpleNamespace()
    request.apply(worker)
    assert (worker.log, worker.mark, worker.open) == (2, {"a": 1}, os.getpid)
    assert not hasattr(worker, "age")


@pytest.mark.parametrize("count", [1, 200, 201, 450])
def test_a_promotion_comes_with_all_its_descriptors(count: int) -> None:
    ours, its = open_requests()
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]
    with ours, its:
        assert receive_promotion(its) is None, "nothing has come"
        send_promotion(ours, files)
        received = receive_promotion(its)
        assert received is not None
        assert len(received) == count
        assert not set(received) & set(files)
        assert not any(map(os.get_inheritable, received))
        assert receive_promotion(its) is None
    for each in (*files, *received):
        os.close(each)


@pytest.mark.parametrize("data", [b"", b"promoted 1 2", b"promoted", b"\xff"])
def test_half_a_promotion_is_none_and_leaves_no_descriptor(data: bytes) -> None:
    ours, its = open_requests()
    with ours, its:
        before = os.listdir("/proc/self/fd")
        socket.send_fds(ours, [data or b"x"], [ours.fileno()])
        assert receive_promotion(its) is None
        assert os.listdir("/proc/self/fd") == before
