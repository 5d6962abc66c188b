"""The start_response contract: exc_info, second calls, and what may stand in a head."""

from __future__ import annotations

import pytest

from tests.harness import REFERENCE, Server, with_each
from tests.harness.front_end_client import needs_an_end
from tests.harness.http2_client import Http2Client, has_no_such
from tests.harness.wire import Short, request

REFUSED = [
    "twice",
    "status_empty",
    "status_words",
    "status_short",
    "status_crlf",
    "status_lf",
    "status_bytes",
    "status_int",
    "status_wide",
    "name_crlf",
    "name_space",
    "name_colon",
    "name_empty",
    "name_bytes",
    "name_wide",
    "value_crlf",
    "value_cr",
    "value_lf",
    "value_nul",
    "value_bytes",
    "value_int",
    "value_none",
    "value_wide",
    "fields_none",
    "fields_triples",
    "length_words",
    "length_negative",
]


@with_each("case", REFUSED)
def test_a_forbidden_call_is_answered_500(server: Server, version: str, case: str) -> None:
    if REFERENCE and case == "length_negative":
        return  # the reference server sends it
    with server.connect() as wire:
        reply = wire.get(f"/protocol?case={case}", version=version)
        assert reply.status == 500
        assert "X-Injected" not in dict(reply.fields)
        assert reply.get("x-a") is None
        wire.closed()
    assert server.get("/hello").status == 200


def test_a_second_call_raises_assertion_error(server: Server) -> None:
    assert server.get("/protocol?case=twice_tolerated").body == b"AssertionError"


@pytest.mark.beyond_reference("the status line is sent as `None`")
def test_a_response_that_was_never_started_is_answered_500(server: Server, version: str) -> None:
    with server.connect() as wire:
        assert wire.get("/protocol?case=never", version=version).status == 500


@pytest.mark.beyond_reference("a 103 as final status is sent as it is")
def test_an_interim_status_is_no_final_one(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.get("/protocol?case=status_interim")
    assert reply.status == 500


@pytest.mark.beyond_reference("the fields given first are sent as well")
def test_exc_info_before_the_head_replaces_the_response(server: Server, version: str) -> None:
    with server.connect() as wire:
        reply = wire.get("/excinfo?when=before", version=version)
    assert (reply.status, reply.reason, reply.body) == (503, "Later", b"replaced")
    assert reply.get("x-first") is None
    assert reply.get("x-second") == "yes"


def test_exc_info_after_the_head_raises_and_ends_the_connection(server: Server) -> None:
    needs_an_end(server)
    with server.connect() as wire:
        with pytest.raises(Short):
            wire.get("/excinfo?when=after")
        assert wire.ended() == b""
    server.log.wait("too late")


def test_reason_phrases_are_the_applications(server: Server, version: str) -> None:
    with server.connect() as wire:
        reply = wire.get("/fields?status=299%20My%20Own%20Words", version=version)
    assert (reply.status, reply.reason) == (299, "My Own Words")


def test_a_status_without_a_phrase(server: Server) -> None:
    reply = server.get("/fields?status=404%20&raw")
    says_one = server.wire_options.get("protocol") == "fastcgi"  # CGI's status is text that nginx passes on as it is
    assert (reply.status, reply.reason.strip()) == (404, "Not Found" if says_one else "")


def test_fields_keep_order_and_case(server: Server, version: str) -> None:
    with server.connect() as wire:
        if isinstance(wire, Http2Client):
            has_no_such()  # names are in lower case there
        reply = wire.get("/fields?X-b=2&X-A=1&x-C=3&Set-Cookie=a&Set-Cookie=b", version=version)
    names = [name for name, _ in reply.fields]
    assert names[names.index("Content-Type") :] == [
        "Content-Type",
        "X-b",
        "X-A",
        "x-C",
        "Set-Cookie",
        "Set-Cookie",
    ]
    assert reply.all("set-cookie") == ["a", "b"]


def test_values_are_latin_1(server: Server) -> None:
    assert server.get("/fields?X-Wide=gr%FC%DF%20dich").get("x-wide") == "gr\u00fc\u00df dich"


@with_each("name", ["Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade", "Proxy-Authenticate"])
def test_hop_by_hop_fields_are_the_servers(server: Server, version: str, name: str) -> None:
    # The validator refuses them too, which is why it has to stand aside here.
    with server.connect() as wire:
        reply = wire.get(f"/fields?{name}=x-app&raw", version=version)
    assert reply.status == 200
    assert "x-app" not in [value for _, value in reply.fields]


def test_every_response_has_a_date_and_one_server(server: Server, version: str) -> None:
    with server.connect() as wire:
        reply = wire.get("/hello", version=version)
    assert len(reply.all("date")) == 1
    assert len(reply.all("date")[0]) == 29
    assert reply.all("date")[0].endswith(" GMT")
    assert reply.all("server") == ["gunicorn" if REFERENCE else "tricorn"]


def test_the_response_has_the_version_of_the_request(server: Server, version: str) -> None:
    with server.connect() as wire:
        assert wire.get("/hello", version=version).version == f"HTTP/{version}"


def test_write_after_start_response(server: Server, version: str) -> None:
    with server.connect() as wire:
        reply = wire.get("/writes?count=3&size=2", version=version)
    assert reply.body == b"aabbcctail"


def test_write_with_a_length(server: Server, version: str) -> None:
    with server.connect() as wire:
        reply = wire.get("/writes?count=3&size=70000&length", version=version)
    assert reply.framing == "length"
    assert reply.body == b"a" * 70000 + b"b" * 70000 + b"c" * 70000 + b"tail"


def test_write_alone(server: Server, version: str) -> None:
    with server.connect() as wire:
        assert wire.get("/writes?count=2&size=1&alone", version=version).body == b"ab"


def test_an_empty_write_does_not_end_the_body(server: Server, version: str) -> None:
    with server.connect() as wire:
        assert wire.get("/writes?count=1&empty&raw", version=version).body == b"aaaaatail"


def test_write_takes_bytes_only(server: Server) -> None:
    needs_an_end(server)
    with server.connect() as wire, pytest.raises(Short):
        wire.get("/writes?count=1&bad=str&raw")
    server.log.wait("TypeError")


def test_fields_may_be_lists_of_two(server: Server) -> None:
    """PEP 3333 has tuples; gunicorn takes what can be unpacked, and applications that make lists run there."""
    reply = server.get("/fields?X-A=1&as_lists=1&raw")
    assert (reply.status, reply.get("x-a")) == (200, "1")


def test_blanks_around_a_value_are_none_of_it(server: Server) -> None:
    """Django's cookies begin with one; a length with one is a length."""
    with server.connect() as wire:
        wire.send(request("GET", "/fields?Set-Cookie=%20a=b%20&Content-Length=%204%20&Connection=close&raw"))
        head = wire.ended()
    assert b"Set-Cookie: a=b\r\n" in head
    assert b"Content-Length: 4\r\n" in head


def test_an_application_that_names_a_transfer_encoding_is_warned_once(server: Server) -> None:
    for _ in range(2):
        reply = server.get("/fields?Transfer-Encoding=chunked&raw")
        assert (reply.status, reply.body) == (200, b"body")
    if not REFERENCE:
        server.log.wait("removed the application's Transfer-Encoding header: the server frames responses")
