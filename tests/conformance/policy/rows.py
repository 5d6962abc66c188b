"""The table: what every worker class keeps to, whatever the interface of its applications.

A row is a policy and the case in which it shows (`cases.py`). It names the subjects that are held to it (`on`), and
says of each of the others in a sentence why it has no such row (`absent`). What a subject does otherwise without a
reason is a defect, named in `defects`: its test is expected to fail, and fails when it does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.conformance.policy.cases import BODY_TEXT, LEAST, MUCH, Outcome
from tests.conformance.policy.stage import SOON, Line, Post

Check = Callable[[Outcome], None]

WSGI = ("sync", "gthread", "gevent", "eventlet", "tornado-wsgi")
SOCKET = ("asgi-websocket",)
LOOPS = ("asgi", "tornado", "aiohttp")
HTTP = (*WSGI, *LOOPS)
EVERY = (*HTTP, *SOCKET)


def each(subjects: tuple[str, ...], sentence: str) -> dict[str, str]:
    return dict.fromkeys(subjects, sentence)


@dataclass(frozen=True)
class Row:
    name: str
    case: str
    check: Check | Mapping[str, Check]
    """One for all, or by subject where what is told is told in other words."""
    on: tuple[str, ...] = EVERY
    absent: Mapping[str, str] = field(default_factory=dict)
    defects: Mapping[str, str] = field(default_factory=dict)

    def of(self, subject: str) -> Check:
        return self.check if callable(self.check) else self.check.get(subject, self.check[""])


# What is looked at.


def page(status: int) -> Check:
    """The server's or the library's own answer, and the end of the connection."""

    def check(outcome: Outcome) -> None:
        head, _, body = outcome.heard.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status), outcome.heard[:200]
        assert b"\r\nconnection: close" in head.lower()
        assert b"\r\ncontent-length: %d" % len(body) in head.lower(), "it is complete, and the only one"

    return check


def last_reply(outcome: Outcome) -> None:
    """Complete, and the end of its connection."""
    head, _, body = outcome.heard.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), outcome.heard[:200]
    assert head.lower().count(b"\r\nconnection: close") == 1
    assert body == b"Hello"


def cut_off(begun: bytes = b"begun") -> Check:
    """The response ends where its framing does not."""

    def check(outcome: Outcome) -> None:
        head, _, body = outcome.heard.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), outcome.heard[:200]
        assert begun in body
        assert b"HTTP/1.1" not in body, "nothing else is said in the midst of it"
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        assert len(body) < int(length[1]) if length else not body.endswith(b"\r\n0\r\n\r\n")

    return check


def heard(expected: bytes) -> Check:
    def check(outcome: Outcome) -> None:
        assert outcome.heard == expected

    return check


def ends_with(expected: bytes, status: int = 200) -> Check:
    def check(outcome: Outcome) -> None:
        assert outcome.heard.startswith(b"HTTP/1.1 %d " % status), outcome.heard[:200]
        assert outcome.heard.endswith(expected), outcome.heard[-200:]

    return check


def line(status: int, sent: int | None = None) -> Check:
    """Exactly one in the access log."""

    def check(outcome: Outcome) -> None:
        (found,) = outcome.stage.lines(outcome.tag)
        assert found == Line(status, found.sent if sent is None else sent)

    return check


def no_line(outcome: Outcome) -> None:
    assert not outcome.stage.has_line(outcome.tag)


def page_bytes(outcome: Outcome) -> None:
    """`%(B)s`: bytes of the body that were sent."""
    (found,) = outcome.stage.lines(outcome.tag)
    assert found.sent == len(outcome.heard.partition(b"\r\n\r\n")[2])


def hook(status: int, sent: int | None = None, headers: str = "['one']") -> Check:
    """`post_request`, exactly once."""

    def check(outcome: Outcome) -> None:
        (found,) = outcome.stage.posts(outcome.tag)
        assert found == Post(status, found.sent if sent is None else sent, headers)

    return check


def no_hook(outcome: Outcome) -> None:
    assert not outcome.stage.server.log.matching(rf"post \S+/{outcome.tag} ")


def same_in_both(outcome: Outcome) -> None:
    """What the access log tells, the hook is told."""
    (seen,) = outcome.stage.lines(outcome.tag)
    (told,) = outcome.stage.posts(outcome.tag)
    assert (told.status, told.sent) == (seen.status, seen.sent)


def error(text: str = "") -> Check:
    """The sentence that names the request, as an error."""

    def check(outcome: Outcome) -> None:
        outcome.stage.server.log.wait(
            rf"\[ERROR\] Error handling request (GET|POST) /[-a-z]+/{outcome.tag}{re.escape(text)}$", within=SOON
        )

    return check


def warning(text: str) -> Check:
    def check(outcome: Outcome) -> None:
        outcome.stage.server.log.wait(rf"\[WARNING\] {text.replace('TAG', outcome.tag)}", within=SOON)

    return check


def traceback(outcome: Outcome) -> None:
    outcome.stage.server.log.wait(rf"RuntimeError: policy marker {outcome.tag}$", within=SOON)


def no_error(outcome: Outcome) -> None:
    outcome.stage.lines(outcome.tag)
    assert not outcome.stage.server.log.matching(rf"\[(ERROR|WARNING)\].*/{outcome.tag}\b")


def told(event: str) -> Check:
    """The application is."""

    def check(outcome: Outcome) -> None:
        outcome.stage.told(outcome.tag, event)

    return check


def not_called(outcome: Outcome) -> None:
    assert not outcome.stage.was_told(outcome.tag, "in")


def held_back(outcome: Outcome) -> None:
    """It has written what buffers hold, and no more."""
    count, _, _ = outcome.stage.told(outcome.tag, "stopped").partition(" ")
    assert int(count) * 65536 < 8 << 20
    assert not outcome.stage.was_told(outcome.tag, "poured")


def body_text(outcome: Outcome) -> None:
    assert BODY_TEXT in outcome.heard, outcome.heard[-200:]


def four_things(outcome: Outcome) -> None:
    """A logger of one's own and the hook: status, bytes, headers; and the logger the time."""
    pattern = rf"access \S+/{outcome.tag} (\d+) (\d+) (\[.*\]) (\d+)$"
    (found,) = outcome.stage.server.log.wait(pattern, within=SOON)
    assert found.groups()[:3] == ("200", "6", "['one']")
    assert LEAST * 1e6 <= int(found[4]) <= int(outcome.heard)
    assert outcome.stage.posts(outcome.tag) == [Post(200, 6, "['one']")]


# Why a subject has no such row.

NO_BODY = each(SOCKET, "the request of a WebSocket has no body")
NO_MORE = each(SOCKET, "the connection of a WebSocket is used for nothing else afterwards")
BUFFERED = each(WSGI, "the application is called when the body is there, so it has not begun")
IN_ONE_PIECE = each(SOCKET, "a message is no response that ends")
NOT_TOLD = each(WSGI, "PEP 3333 has nothing by which a call would be told")
AS_IT_COMES = each(LOOPS, "bodies are read as they come in any case: the row of the same name has it") | NO_BODY
OWN_ERRORS = {"aiohttp": "aiohttp answers and logs what a handler lets out, in its own words"}
HANDSHAKE = each(SOCKET, "request_timeout counts for the handshake only")
NO_HALF = each(SOCKET, "a client that cannot send a Close frame is gone (RFC 6455 section 7.1.5)")

LATE = ": exceeded request_timeout (1 s)"
"""How the sentence goes on that names a late request."""


def ending(
    name: str,
    case: str,
    seen: Check | Mapping[str, Check],
    log: Check | Mapping[str, Check],
    post: Check | Mapping[str, Check],
    *,
    on: tuple[str, ...] = EVERY,
    absent: Mapping[str, str] | None = None,
    without_hook: Mapping[str, str] | None = None,
    defects: Mapping[str, str] | None = None,
) -> list[Row]:
    """What the client sees of an end, the access log, and `post_request`."""
    absent, without_hook, defects = absent or {}, without_hook or {}, defects or {}
    with_hook = tuple(subject for subject in on if subject not in without_hook)
    return [
        Row(f"{name}: what the client sees", case, seen, on, absent, defects),
        Row(f"{name}: one line in the access log", case, log, on, absent, defects),
        Row(
            f"{name}: post_request is told once, and the same",
            case,
            post,
            with_hook,
            {**absent, **without_hook},
            defects,
        ),
    ]


def of_sockets(http: Check, socket: Check) -> Mapping[str, Check]:
    return {"": http, "asgi-websocket": socket}


def all_of(*checks: Check) -> Check:
    def check(outcome: Outcome) -> None:
        for one in checks:
            one(outcome)

    return check


NO_CALL = each(WSGI, "a request whose body is refused never begins, and has no hooks")
ANSWERED = [
    *ending(
        "an answer",
        "normal",
        of_sockets(heard(b"Hello"), ends_with(b"hello\x88\x02\x03\xe8", 101)),
        of_sockets(line(200, 5), line(101)),
        of_sockets(all_of(hook(200, 5), same_in_both), all_of(hook(101), same_in_both)),
    ),
    Row("an answer: the hooks and loggers are told the same four things", "observed", four_things, HTTP, NO_MORE),
    Row("the last request that a connection may have: its reply closes it", "last", last_reply, HTTP, NO_MORE),
]
FAILED = [
    *ending("an error before the head", "raises", page(500), line(500), hook(500, headers="[]")),
    Row(
        "an error before the head: the log names the request",
        "raises",
        error(),
        (*WSGI, "asgi", "tornado", *SOCKET),
        OWN_ERRORS,
    ),
    Row("an error before the head: the log has its traceback", "raises", traceback),
    Row(
        "an error before the head: the page's bytes are logged",
        "raises",
        all_of(page_bytes, same_in_both),
    ),
    *ending(
        "an error after the head",
        "raises_late",
        of_sockets(cut_off(), ends_with(b"\x88\x02\x03\xf3", 101)),
        of_sockets(line(200, 5), line(101)),
        of_sockets(hook(200, 5), hook(101)),
    ),
    Row(
        "an error after the head: the log names the request",
        "raises_late",
        error(),
        (*WSGI, "asgi", "tornado", *SOCKET),
        OWN_ERRORS,
    ),
    Row("an error after the head: the log has its traceback", "raises_late", traceback),
    *ending(
        "a response shorter than it says",
        "short",
        cut_off(b"1234"),
        line(200, 4),
        hook(200, 4),
        on=HTTP,
        absent=IN_ONE_PIECE,
    ),
    Row(
        "a response shorter than it says: the log says how much",
        "short",
        warning("GET /short/TAG: the application sent 6 bytes less than its Content-Length$"),
        (*WSGI, "asgi", "aiohttp"),
        {
            "tornado": "the application is told, by the exception that tornado has for it (HTTPOutputError)",
            **IN_ONE_PIECE,
        },
    ),
    *ending(
        "pre_request raises",
        "refused_by_hook",
        page(500),
        line(500),
        hook(500, headers="[]"),
    ),
    Row("pre_request raises: the application is not called", "refused_by_hook", not_called),
    Row("pre_request raises: the log names the request", "refused_by_hook", error()),
    Row("pre_request raises: the log has its traceback", "refused_by_hook", traceback),
    *ending("a late request", "late", page(504), line(504), hook(504, headers="[]")),
    Row(
        "a late request: the log names it",
        "late",
        error(LATE),
    ),
    *ending(
        "a late request that is being answered",
        "late_begun",
        cut_off(),
        line(200, 5),
        hook(200, 5),
        on=HTTP,
        absent=HANDSHAKE,
    ),
    Row(
        "a late request that is being answered: the log names it",
        "late_begun",
        error(LATE),
        HTTP,
        HANDSHAKE,
    ),
]
LOST = told("lost")
BODIES = [
    *ending(
        "no byte of a body comes",
        "silent",
        page(408),
        line(408),
        hook(408, headers="[]"),
        on=HTTP,
        absent=NO_BODY,
        without_hook=NO_CALL,
    ),
    Row("no byte of a body comes: the application is told", "silent", LOST, LOOPS, {**BUFFERED, **NO_BODY}),
    Row(
        "no byte of a body comes: the page says how many came",
        "silent",
        body_text,
        HTTP,
        NO_BODY,
    ),
    Row(
        "no byte of a body comes: the page's bytes are logged",
        "silent",
        page_bytes,
        HTTP,
        NO_BODY,
    ),
    Row(
        "no byte of a body comes: the log says so",
        "silent",
        warning(r"Invalid request from ip=127\.0\.0\.1: The request body did not come in time"),
        HTTP,
        NO_BODY,
    ),
    *ending(
        "no byte of a body that is being read comes",
        "silent_read",
        page(408),
        line(408),
        hook(408, headers="[]"),
        on=WSGI,
        absent=AS_IT_COMES,
    ),
    Row("no byte of a body that is being read comes: the application is told", "silent_read", LOST, WSGI, AS_IT_COMES),
    Row(
        "no byte of a body that is being read comes: the page says how many came",
        "silent_read",
        body_text,
        WSGI,
        AS_IT_COMES,
    ),
    *ending(
        "no byte of a body comes while it is answered",
        "silent_begun",
        cut_off(),
        line(200, 5),
        hook(200, 5),
        on=HTTP,
        absent=NO_BODY,
    ),
    Row("no byte of a body comes while it is answered: the application is told", "silent_begun", LOST, HTTP, NO_BODY),
    Row("a body below its minimum rate: 408", "slow", page(408), HTTP, NO_BODY),
    Row("a body below its minimum rate, as it is read: 408", "slow_read", page(408), WSGI, AS_IT_COMES),
    Row("trailers that drip: 408", "trailers", page(408), HTTP, NO_BODY),
    Row("trailers that drip, as they are read: 408", "trailers_read", page(408), WSGI, AS_IT_COMES),
    Row(
        "a body that the application does not ask for may take its time",
        "not_asked_for",
        heard(b"%d" % (MUCH + 10)),
        HTTP,
        NO_BODY,
    ),
    *ending(
        "a body that is wrong",
        "refused",
        of_sockets(page(400), page(426)),
        of_sockets(line(400), line(426)),
        hook(400, headers="[]"),
        without_hook=NO_CALL | each(SOCKET, "a handshake that is wrong never begins, and has no hooks"),
    ),
    Row("a body that is wrong: the application is told", "refused", LOST, LOOPS, {**BUFFERED, **NO_BODY}),
    *ending(
        "a body that is being read is wrong",
        "refused_read",
        page(400),
        line(400),
        hook(400, headers="[]"),
        on=WSGI,
        absent=AS_IT_COMES,
    ),
    Row("a body that is being read is wrong: the application is told", "refused_read", LOST, WSGI, AS_IT_COMES),
    *ending(
        "a body is wrong while it is answered",
        "refused_begun",
        cut_off(),
        line(200, 5),
        hook(200, 5),
        on=HTTP,
        absent=NO_BODY,
    ),
    Row("a body is wrong while it is answered: the application is told", "refused_begun", LOST, HTTP, NO_BODY),
    *ending(
        "a body is cut short",
        "truncated",
        heard(b""),
        {"": no_line, **dict.fromkeys(LOOPS, line(0, 0))},
        hook(0, 0, headers="[]"),
        on=HTTP,
        absent=NO_BODY,
        without_hook=NO_CALL,
    ),
    Row("a body is cut short: the application is told", "truncated", LOST, LOOPS, {**BUFFERED, **NO_BODY}),
    *ending(
        "a body that is being read is cut short",
        "truncated_read",
        heard(b""),
        line(400),
        hook(400, headers="[]"),
        on=WSGI,
        absent=AS_IT_COMES,
    ),
    Row("a body that is being read is cut short: the application is told", "truncated_read", LOST, WSGI, AS_IT_COMES),
]
BACK_PRESSURE = [
    *ending(
        "a client that reads nothing",
        "unread_stream",
        of_sockets(cut_off(bytes(1000)), ends_with(b"", 101)),
        of_sockets(line(200), line(101)),
        of_sockets(all_of(hook(200), same_in_both), all_of(hook(101), same_in_both)),
    ),
    Row(
        "a client that reads nothing: the application is held back, and told",
        "unread_stream",
        held_back,
        on=tuple(subject for subject in EVERY if subject != "asgi"),
        absent={"asgi": "only `receive` tells of it, which this application does not call: the row below has it"},
    ),
    *ending(
        "a client that reads nothing of one piece",
        "unread_whole",
        cut_off(bytes(1000)),
        line(200),
        all_of(hook(200), same_in_both),
        on=HTTP,
        absent=IN_ONE_PIECE,
    ),
    *ending(
        "a client that reads nothing and sends its body",
        "unread_with_a_body",
        cut_off(bytes(1000)),
        line(200),
        all_of(hook(200), same_in_both),
        on=LOOPS,
        absent=each(WSGI, "it writes and reads from one thread: one wait at a time") | NO_BODY,
    ),
    Row(
        "a client that reads nothing and sends its body: the application is held back, and told",
        "unread_with_a_body",
        held_back,
        LOOPS,
        each(WSGI, "it writes and reads from one thread: one wait at a time") | NO_BODY,
    ),
    Row("a client that reads slowly and steadily gets all of it", "slow_reader", told("poured")),
]
LEFT = [
    *ending(
        "a half-close with the request",
        "half_closed",
        ends_with(b"\r\n\r\nHello"),
        line(200, 5),
        hook(200, 5),
        on=HTTP,
        absent=NO_HALF,
    ),
    *ending(
        "a half-close while the application works",
        "half_closed_later",
        ends_with(b"\r\n\r\nworked"),
        line(200, 6),
        hook(200, 6),
        on=HTTP,
        absent=NO_HALF,
    ),
    Row(
        "a half-close: asgi_disconnect_grace_period is how long the client may wait",
        "half_closed_for_good",
        heard(b""),
        LOOPS,
        each(WSGI, "a call on a thread or greenlet goes on, and its client may wait for as long") | NO_HALF,
    ),
    *ending(
        "a half-close in the middle of the response",
        "half_closed_begun",
        ends_with(b"\r\n0\r\n\r\n"),
        line(200, 11),
        hook(200, 11),
        on=HTTP,
        absent=NO_HALF,
    ),
    *ending(
        "a client leaves before its answer, with FIN",
        "closed",
        heard(b""),
        of_sockets(line(200, 6), line(0, 0)),
        of_sockets(hook(200, 6), hook(0, 0, headers="[]")),
    ),
    *ending(
        "a client leaves before its answer, with RST",
        "reset",
        heard(b""),
        {"": line(200, 6), **dict.fromkeys((*LOOPS, *SOCKET), line(0, 0))},
        {"": hook(200, 6), **dict.fromkeys((*LOOPS, *SOCKET), hook(0, 0, headers="[]"))},
    ),
    *ending(
        "a client leaves in the middle of its answer, with FIN",
        "closed_begun",
        heard(b""),
        of_sockets(line(200), line(101)),
        of_sockets(all_of(hook(200), same_in_both), all_of(hook(101), same_in_both)),
    ),
    *ending(
        "a client leaves in the middle of its answer, with RST",
        "reset_begun",
        heard(b""),
        of_sockets(line(200), line(101)),
        of_sockets(all_of(hook(200), same_in_both), all_of(hook(101), same_in_both)),
    ),
    *(
        Row(
            f"{name}: it is no error of the application",
            case,
            no_error,
            (*WSGI, "asgi", "tornado", *SOCKET),
            OWN_ERRORS,
        )
        for name, case in (
            ("a client leaves before its answer, with FIN", "closed"),
            ("a client leaves before its answer, with RST", "reset"),
            ("a client leaves in the middle of its answer, with FIN", "closed_begun"),
            ("a client leaves in the middle of its answer, with RST", "reset_begun"),
        )
    ),
    Row("an application that listens is told of a FIN", "listens_closed", told("left"), (*LOOPS, *SOCKET), NOT_TOLD),
    Row("an application that listens is told of a RST", "listens_reset", told("left"), (*LOOPS, *SOCKET), NOT_TOLD),
]
ROWS = [*ANSWERED, *FAILED, *BODIES, *BACK_PRESSURE, *LEFT]
