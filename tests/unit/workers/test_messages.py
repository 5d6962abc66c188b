"""The line between a worker and its arbiter."""

from __future__ import annotations

import pytest
from tricorn.workers.messages import BootFailed, Decoder, Message, Ready, encode

PIPE_BUF = 4096


@pytest.mark.parametrize("message", [Ready(), BootFailed(4, "No module named 'x'"), BootFailed(3, "ü")])
def test_what_is_sent_arrives(message: Message) -> None:
    assert Decoder().feed(encode(message)) == [message]


def test_a_reason_of_many_lines_becomes_one() -> None:
    assert Decoder().feed(encode(BootFailed(3, "one\n two\r\nthree"))) == [BootFailed(3, "one two three")]


def test_a_message_is_written_whole_however_long_its_reason() -> None:
    assert len(encode(BootFailed(3, "ü" * 100_000))) < PIPE_BUF


def test_what_no_worker_says_is_not_heard() -> None:
    noise = b"hello\nboot-failed x y\nboot-failed 3\n\n\xff\xfe\nready\n"
    assert Decoder().feed(noise) == [Ready()]


def test_an_empty_reason_is_no_reason_to_be_silent() -> None:
    assert Decoder().feed(encode(BootFailed(3, ""))) == [BootFailed(3, "")]
