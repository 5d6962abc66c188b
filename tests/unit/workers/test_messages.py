"""The line between a worker and its arbiter."""

from __future__ import annotations

import pytest
from tricorn.workers.messages import (
    BootFailed,
    Changed,
    Decoder,
    Message,
    Notice,
    Parted,
    Ready,
    Retire,
    StackLines,
    Stuck,
    encode,
)

PIPE_BUF = 4096

STUCK = Stuck("timeout", 3, 30.25, "GET /slow?x=1", ('File "/srv/app.py", line 3 in slow', 'File "w.py", line 1 in f'))

# What the monitor and faulthandler's C handler write.
BLOCK = b"""stuck timeout 3 30250 GET /slow?x=1
Stack (most recent call first):
  File "/srv/app.py", line 3 in slow
  File "w.py", line 1 in f
stuck-end 3
"""


@pytest.mark.parametrize(
    "message",
    [
        Ready(kind="gthread"),
        Ready(stand_in=True, kind="asgi"),
        BootFailed(4, "No module named 'x'"),
        BootFailed(3, "ü"),
        Retire("max_requests"),
        Retire("it has grown too much"),
        Parted(),
        Changed("/srv/my  app/ü.py"),
        Changed("/srv/\udcff.py"),
        Notice("warning", "pycurl blocks. Use another one."),
        Notice("info", ""),
        Notice("error", "sorry, too many clients already", "127.0.0.1:5432"),
        Notice("error", "ü", "/run/postgresql/\udcff/.s.PGSQL.5432"),
        STUCK,
        Stuck("request_timeout", 0, 0.5, "POST /ü", ()),
        StackLines(('File "a.py", line 1 in <module>',)),
    ],
)
def test_what_is_sent_arrives(message: Message) -> None:
    assert Decoder().feed(encode(message)) == [message]


def test_a_reason_of_many_lines_becomes_one() -> None:
    assert Decoder().feed(encode(BootFailed(3, "one\n two\r\nthree"))) == [BootFailed(3, "one two three")]


def test_the_subject_of_a_notice_is_one_word() -> None:
    notice = Notice("error", "full\nup", "/my files/s")
    assert Decoder().feed(encode(notice)) == [Notice("error", "full up", "/my?files/s")]


@pytest.mark.parametrize(
    "message",
    [
        BootFailed(3, "ü" * 100_000),
        Changed("/x" * 100_000),
        Retire("y" * 100_000),
        Notice("error", "y" * 100_000, "/x" * 100_000),
    ],
)
def test_a_message_is_written_whole_however_long_its_text(message: Message) -> None:
    assert len(encode(message)) < PIPE_BUF


def test_what_no_worker_says_is_not_heard() -> None:
    noise = (
        b"notice critical x\nnotice\n"
        b"hello\nboot-failed x y\nboot-failed 3\n\n\xff\xfe\nstuck never 1 2 GET /\nstuck timeout a b c\nready sync\n"
    )
    assert Decoder().feed(noise) == [Ready(kind="sync")]


def test_an_empty_reason_is_no_reason_to_be_silent() -> None:
    assert Decoder().feed(encode(BootFailed(3, ""))) == [BootFailed(3, "")]


def test_a_stuck_call_is_told_once_its_stack_is_complete() -> None:
    assert Decoder().feed(BLOCK) == [STUCK]


def test_a_stack_may_come_in_any_pieces() -> None:
    decoder = Decoder()
    messages = [message for byte in BLOCK for message in decoder.feed(bytes([byte]))]
    assert messages == [STUCK]


def test_other_messages_within_a_stack_are_heard_and_not_part_of_it() -> None:
    before, after = BLOCK[: BLOCK.index(b'  File "w')], BLOCK[BLOCK.index(b'  File "w') :]
    noise = b"changed /srv/app.py\nsomething of the application's\n"
    assert Decoder().feed(before + noise + after) == [Changed("/srv/app.py"), STUCK]


def test_a_call_that_ended_too_soon_has_no_stack() -> None:
    assert Decoder().feed(b"stuck request_timeout 0 2000 GET /\nstuck-end 0\n") == [
        Stuck("request_timeout", 0, 2.0, "GET /", ())
    ]


def test_a_thread_outside_of_python_has_no_stack() -> None:
    block = b"stuck timeout 0 2000 GET /\nStack (most recent call first):\n  <no Python frame>\nstuck-end 0\n"
    assert Decoder().feed(block) == [Stuck("timeout", 0, 2.0, "GET /", ("<no Python frame>",))]


def test_a_block_without_an_end_is_told_when_another_begins_and_when_the_worker_is_gone() -> None:
    decoder = Decoder()
    assert decoder.feed(b"stuck timeout 0 2000 GET /a\nstuck timeout 1 3000 GET /b\n") == [
        Stuck("timeout", 0, 2.0, "GET /a", ())
    ]
    assert decoder.feed(b'  File "b.py", line 1 in b\n  File "cut') == []
    assert decoder.close() == [Stuck("timeout", 1, 3.0, "GET /b", ('File "b.py", line 1 in b',))]
    assert decoder.close() == []


def test_a_stack_nobody_announced_is_told_as_it_comes() -> None:
    decoder = Decoder()
    assert decoder.feed(b'Stack (most recent call first):\n  File "a.py", line 1 in a\n  File "b.py", l') == [
        StackLines(('File "a.py", line 1 in a',))
    ]
    assert decoder.feed(b"ine 2 in b\nready sync\n") == [StackLines(('File "b.py", line 2 in b',)), Ready(kind="sync")]


def test_a_request_that_is_no_utf8_is_told_all_the_same() -> None:
    (message,) = Decoder().feed(b"stuck timeout 0 1 GET /\xff\nstuck-end 0\n")
    assert isinstance(message, Stuck)
    assert message.request == "GET /\ufffd"


def test_memory_is_bounded_whatever_is_written_into_the_pipe() -> None:
    decoder = Decoder()
    for _ in range(100):
        assert decoder.feed(b"x" * 65536) == []
    frames = b'  File "a.py", line 1 in a\n' * 100_000
    assert decoder.feed(b"\nstuck timeout 0 1 GET /\n" + frames) == []
    (message,) = decoder.close()
    assert isinstance(message, Stuck)
    assert len(message.stack) <= 200
    assert decoder.feed(b"ready sync\n") == [Ready(kind="sync")]
