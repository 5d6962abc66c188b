"""What a monitor tells of a stall: read where it is right, and harmless where it is not."""

from __future__ import annotations

import json

import pytest
from tricorn.workers.messages import Decoder, Libraries, encode
from tricorn.workers.stall import MOST, TEXT, Stall, parse

TOLD = {
    "duration": 0.4,
    "added": 0.1,
    "again": True,
    "ongoing": False,
    "verdict": "BLOCKED_SYSCALL",
    "sentence": "Blocked.",
    "computed": 0.02,
    "queued": 0.03,
    "file": "app.py",
    "line": 14,
    "function": "pay",
    "source": "p.flush()",
    "library": "librdkafka",
    "library_version": "2.16.0",
    "c_function": "rd_kafka_flush",
    "package": "confluent-kafka",
    "package_version": "2.16.1",
    "call": "futex",
    "peer": "",
    "request": "GET /pay",
    "sure": True,
    "delayed": 9,
    "missing": "No stacks.",
}


def test_a_record_is_read() -> None:
    (found,) = Decoder().feed(b"stall " + json.dumps(TOLD).encode() + b"\n")
    assert isinstance(found, Stall)
    assert (found.duration, found.again, found.verdict, found.sure, found.delayed) == (
        0.4,
        True,
        "BLOCKED_SYSCALL",
        True,
        9,
    )
    assert (found.place.file, found.place.line, found.native.function) == ("app.py", 14, "rd_kafka_flush")
    assert found.blocked == pytest.approx(0.95)
    assert found.missing == "No stacks."
    assert found.request_seconds == pytest.approx(0.9)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"7", b'"a"', b"[" * 3000, b"\xff\xfe"])
def test_what_is_no_record_is_passed_over(line: bytes) -> None:
    assert Decoder().feed(b"stall " + line + b"\n") == []


@pytest.mark.parametrize(
    "value", [None, True, -1, 10**400, float("nan"), float("inf"), "\x1b[2J" * 900, [], {}, {"a": []}]
)
def test_no_value_does_harm(value: object) -> None:
    found = parse(json.dumps(dict.fromkeys(TOLD, value)).encode())
    assert found is not None
    assert found.verdict == "UNDECIDED"
    assert 0 <= found.duration <= MOST
    assert 0 <= found.blocked <= 1
    assert 0 <= found.delayed <= MOST
    assert len(found.sentence) <= TEXT
    assert found.sentence.isprintable()


def test_versions_of_libraries_travel() -> None:
    told = Libraries({"librdkafka": "2.16.0"})
    assert Decoder().feed(encode(told)) == [told]
    assert Decoder().feed(b'libraries {"a": 1, "b": "\\u001b"}\nlibraries {\nlibraries []\n') == [Libraries({})]
