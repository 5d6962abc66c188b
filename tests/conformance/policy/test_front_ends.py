"""`protocol`: a request that a front end brings as vars is the request that HTTP/1 would bring, under every class."""

from __future__ import annotations

import hashlib
import socket
import struct
import threading
from itertools import pairwise
from typing import Any

import pytest

from tests.conformance.policy.test_proxy_headers import APPLICATIONS
from tests.conftest import Pool
from tests.harness import APPS, Server, until
from tests.harness.classes import ALL_CLASSES, WSGI, each
from tests.harness.front_ends import (
    ABORT,
    CANNOT_MULTIPLEX,
    END,
    GET_VALUES,
    PARAMS,
    PROTOCOLS,
    STDIN,
    UNKNOWN_ROLE,
    UNKNOWN_TYPE,
    VALUES,
    begin,
    cgi,
    fastcgi,
    packet,
    pairs,
    parsed,
    record,
    records,
    reply,
    stdin,
    stdout,
    uwsgi,
)
from tests.harness.proxy_protocol import LINE
from tests.harness.wire import Reply, Wire

pytestmark = pytest.mark.beyond_reference("it has uwsgi alone, and no vars")

PROTOCOL = pytest.mark.parametrize("protocol", PROTOCOLS)


def serve(pool: Pool, worker_class: str, protocol: str, app: str = "gallery:application", **more: Any) -> Server:
    return pool.get(app, worker_class=worker_class, protocol=protocol, access_logfile="-", **more)


def ask(server: Server, protocol: str, method: str = "GET", target: str = "/", body: bytes = b"", **more: str) -> Reply:
    with server.connect() as wire:
        wire.send(packet(protocol, cgi(method, target, body, **more), body))
        return reply(protocol, wire, method)


@PROTOCOL
@ALL_CLASSES
class TestRequests:
    def test_gets_its_answer(self, pool: Pool, worker_class: str, protocol: str) -> None:
        server = serve(pool, worker_class, protocol)
        got = ask(server, protocol)
        assert (got.status, got.reason, got.body) == (200, "OK", b"Hello\n")
        assert ask(server, protocol, target="/fields?status=404%20No&A=b").get("a") == "b"
        head = ask(server, protocol, "HEAD", "/")
        assert (head.status, head.body) == (200, b"")

    def test_bodies_and_streams_are_whole(self, pool: Pool, worker_class: str, protocol: str) -> None:
        server = serve(pool, worker_class, protocol)
        for size in (0, 1, 20_000, 3_000_000):
            body = b"abcdefg" * (size // 7) + b"x" * (size % 7)
            told = ask(server, protocol, "POST", "/body?raw=1", body).json()
            assert (told["length"], told["sha256"]) == (size, hashlib.sha256(body).hexdigest()), size
        assert ask(server, protocol, target="/stream?count=5&size=70000").body == b"".join(
            letter * 70_000 for letter in (b"a", b"b", b"c", b"d", b"e")
        )
        assert ask(server, protocol, target="/blob?size=1000000").body == b"b" * 1_000_000
        size = len(ask(server, protocol, target="/files?kind=disk&size=300000").body)
        assert size == 300_000 if worker_class in WSGI else size > 1000

    def test_it_comes_in_pieces(self, pool: Pool, worker_class: str, protocol: str) -> None:
        server = serve(pool, worker_class, protocol)
        whole = packet(protocol, cgi("POST", "/body?raw=1", b"Hello"), b"Hello")
        with server.connect() as wire:
            cuts = [0, 1, 3, 9, 200, len(whole) - 20, len(whole) - 3, len(whole)]
            for start, end in pairwise(cuts):
                wire.send(whole[start:end])
                until(wire.is_all_read, "the server has read it")
            assert reply(protocol, wire).json()["length"] == 5

    def test_what_is_wrong_is_refused_in_its_form(self, pool: Pool, worker_class: str, protocol: str) -> None:
        server = serve(pool, worker_class, protocol, limit_request_body=100_000)
        for status, more in (
            (400, {"REQUEST_METHOD": "GET /"}),
            (400, {"REQUEST_URI": "/ HTTP/1.1\r\nX: y"}),
            (400, {"HTTP_X": "a\r\nb: c"}),
            (400, {"HTTP_HOST": "a b"}),
            (400, {"CONTENT_LENGTH": "5, 5"}),
            (413, {"CONTENT_LENGTH": "100001"}),
            (431, {"HTTP_X": "x" * 9000}),
            (414, {"REQUEST_URI": "/" + "x" * 5000}),
        ):
            assert ask(server, protocol, "GET", "/", b"", **more).status == status, more
        with server.connect() as wire:
            wire.send(packet(protocol, {f"V{number}": "" for number in range(1001)}))
            assert reply(protocol, wire).status == 400


@PROTOCOL
@pytest.mark.parametrize("subject", each(*APPLICATIONS))
def test_the_client_is_the_front_ends(pool: Pool, subject: str, protocol: str) -> None:
    worker_class = subject.partition("-")[0]
    server = serve(
        pool, worker_class, protocol, f"told:{APPLICATIONS[subject]}", chdir=APPS, access_logformat="from=%(h)s"
    )
    before = len(server.out.matching(r"^from=203\.0\.113\.9$"))
    told = ask(server, protocol, HTTP_X_FORWARDED_PROTO="https").json()
    assert (told["client"], told["scheme"], told["host"]) == ("203.0.113.9", "http", "shop.example:8080")
    assert ask(server, protocol, HTTPS="on").json()["scheme"] == "https"
    assert ask(server, protocol, REQUEST_SCHEME="https").json()["scheme"] == "https"
    trusted = ask(server, protocol, REMOTE_ADDR="127.0.0.1", HTTP_X_FORWARDED_PROTO="https").json()
    assert (trusted["client"], trusted["scheme"]) == ("127.0.0.1", "https")
    if told["server"] is not None:
        assert told["server"] == ["shop.example", 8080]
    server.out.wait(r"^from=203\.0\.113\.9$", count=before + 3)


TOLD_OF_CLIENTS = ("REMOTE_ADDR", "REMOTE_PORT", "REQUEST_SCHEME", "SERVER_NAME", "SERVER_PORT")


@pytest.mark.parametrize("subject", each(*APPLICATIONS))
def test_a_request_has_nothing_of_the_one_before_on_its_connection(pool: Pool, subject: str) -> None:
    worker_class = subject.partition("-")[0]
    app = f"told:{APPLICATIONS[subject]}"
    more: dict[str, Any] = {"chdir": APPS, "access_logformat": "from=%(h)s", "keep_alive": 30}
    server = serve(pool, worker_class, "fastcgi", app, **more)
    announced = serve(pool, worker_class, "fastcgi", app, **more, proxy_protocol="v1", uwsgi_allow_from="203.0.113.9")
    full = cgi(REMOTE_ADDR="198.51.100.7", REMOTE_USER="joe", HTTPS="on")
    bare = {key: value for key, value in cgi().items() if key not in TOLD_OF_CLIENTS}
    for opening, each_server, own in ((b"", server, "127.0.0.1"), (LINE, announced, "203.0.113.9")):
        with each_server.connect() as wire:
            wire.send(opening)

            def told(vars_: dict[str, str], wire: Wire = wire, **fields: str) -> tuple[str, str]:
                wire.send(fastcgi({**vars_, **fields}, keep=True))
                got = parsed(stdout(wire)).json()
                return got["client"], got["scheme"]

            before = told(bare)
            assert before == (own, "http")
            for _ in range(2):
                assert told(full) == ("198.51.100.7", "https")
                assert told({**full, "HTTPS": ""}) == ("198.51.100.7", "http")
                assert told(bare) == before
                assert told({**bare, "REMOTE_ADDR": "no address"}) == before
            # It is trusted as the front end is, and not as the client before it.
            assert told(bare, HTTP_X_FORWARDED_PROTO="https") == (own, "https" if own == "127.0.0.1" else "http")
            assert told(cgi(REMOTE_ADDR="127.0.0.1"), HTTP_X_FORWARDED_PROTO="https") == ("127.0.0.1", "https")
            assert told(full | {"HTTPS": ""}, HTTP_X_FORWARDED_PROTO="https") == ("198.51.100.7", "http")
            wire.send(fastcgi({**bare, "REQUEST_METHOD": "G E T"}, keep=True))
            assert parsed(stdout(wire)).status == 400
        each_server.log.wait(f"Invalid request from ip={own}: ")


@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "eventlet"))
def test_vars_are_those_of_one_request(pool: Pool, worker_class: str) -> None:
    server = serve(pool, worker_class, "fastcgi", keep_alive=30)
    bare = {key: value for key, value in cgi("GET", "/echo").items() if key not in TOLD_OF_CLIENTS}
    with server.connect() as wire:

        def environ(vars_: dict[str, str]) -> dict[str, str]:
            wire.send(fastcgi(vars_, keep=True))
            told = parsed(stdout(wire)).json().items()
            return {key: value for key, (_, value) in told if isinstance(value, str) and " at 0x" not in value}

        before = environ(bare)
        full = environ(cgi("GET", "/echo", REMOTE_USER="joe", SSL_CLIENT_S_DN="CN=joe", HTTPS="on"))
        assert (full["REMOTE_USER"], full["SERVER_NAME"], full["wsgi.url_scheme"]) == ("joe", "shop.example", "https")
        assert environ(bare) == before
        assert ("REMOTE_USER" not in before, before["REMOTE_ADDR"]) == (True, "127.0.0.1")


@PROTOCOL
@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "eventlet"))
def test_the_environ_has_the_vars(pool: Pool, worker_class: str, protocol: str) -> None:
    server = serve(pool, worker_class, protocol)

    def environ(target: str, **more: str) -> dict[str, str]:
        told = ask(server, protocol, "GET", target, REMOTE_USER="joe", SSL_CLIENT_VERIFY="SUCCESS", **more).json()
        return {key: value for key, (_, value) in told.items()}

    got = environ("/echo/a%20b?c=d", PATH_INFO="/echo/a b", **{"wsgi.input": "x", "UWSGI_FILE": "/etc/passwd"})
    assert got["PATH_INFO"] == "/echo/a b"
    assert (got["RAW_URI"], got["REQUEST_URI"], got["QUERY_STRING"]) == ("/echo/a%20b?c=d", "/echo/a%20b?c=d", "c=d")
    assert (got["REMOTE_ADDR"], got["REMOTE_PORT"], got["REMOTE_USER"]) == ("203.0.113.9", "4711", "joe")
    assert (got["SERVER_NAME"], got["SERVER_PORT"]) == ("shop.example", "8080")
    assert (got["SSL_CLIENT_VERIFY"], got["UWSGI_FILE"]) == ("SUCCESS", "/etc/passwd")
    assert got["wsgi.input"] != "x"
    assert got["HTTP_HOST"] == "shop.example:8080"
    assert environ("/x?y=z", PATH_INFO="/echo/rewritten", QUERY_STRING="a=b")["QUERY_STRING"] == "a=b"
    assert environ("/echo", SERVER_PROTOCOL="HTTP/2.0")["SERVER_PROTOCOL"] == "HTTP/2.0"
    mounted = environ("/shop/echo/1", SCRIPT_NAME="/shop", PATH_INFO="/echo/1")
    assert (mounted["SCRIPT_NAME"], mounted["PATH_INFO"]) == ("/shop", "/echo/1")
    stock = environ("/echo/1", SCRIPT_NAME="/echo/1", PATH_INFO="")
    assert (stock["SCRIPT_NAME"], stock["PATH_INFO"]) == ("", "/echo/1")
    if protocol == "uwsgi":
        with server.connect() as wire:
            wire.send(uwsgi(cgi("GET", "/shop/echo", SCRIPT_NAME="/shop"), modifier=30))
            told = reply(protocol, wire).json()
        assert (told["SCRIPT_NAME"][1], told["PATH_INFO"][1]) == ("/shop", "/echo")


SCOPES = """\
import json

async def application(scope, receive, send):
    told = {key: scope[key] for key in ("path", "root_path", "http_version", "server", "client", "scheme")}
    told["raw_path"], told["query_string"] = scope["raw_path"].decode(), scope["query_string"].decode()
    told["vars"] = scope["extensions"]["tricorn"]["vars"]
    body = json.dumps(told).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
"""


@PROTOCOL
def test_the_scope_has_the_vars(protocol: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("scopes")
    (directory / "scopes.py").write_text(SCOPES)
    with Server("scopes:application", worker_class="asgi", protocol=protocol, chdir=directory) as server:
        more = {"SERVER_PROTOCOL": "HTTP/2.0", "REMOTE_USER": "joe", "wsgi.x": "y", "SCRIPT_NAME": "/shop"}
        got = ask(
            server, protocol, "GET", "/shop/%C3%A4?a=b", PATH_INFO="/\u00c3\u00a4", QUERY_STRING="c=d", **more
        ).json()
    assert (got["path"], got["root_path"], got["raw_path"]) == ("/shop/ä", "/shop", "/shop/%C3%A4")
    assert (got["query_string"], got["http_version"]) == ("c=d", "2")
    assert (got["server"], got["client"]) == (["shop.example", 8080], ["203.0.113.9", 4711])
    assert (got["vars"]["REMOTE_USER"], got["vars"]["wsgi.x"]) == ("joe", "y")
    assert not [name for name in got["vars"] if name.startswith("HTTP_")]


@PROTOCOL
def test_strangers_are_refused(pool: Pool, protocol: str) -> None:
    server = serve(pool, "sync", protocol, uwsgi_allow_from="192.0.2.0/24")
    got = ask(server, protocol)
    assert (got.status, b"Request forbidden" in got.body) == (403, True)
    server.log.wait("Proxy request from '127.0.0.1")
    allowed = serve(pool, "sync", protocol, uwsgi_allow_from="192.0.2.1,127.0.0.0/8")
    assert ask(allowed, protocol, REMOTE_ADDR="198.51.100.1").status == 200, "its clients need not be allowed"


@PROTOCOL
def test_a_balancer_may_announce_the_front_end(pool: Pool, protocol: str) -> None:
    server = serve(pool, "sync", protocol, proxy_protocol="v1", uwsgi_allow_from="203.0.113.9")
    for line, status in ((LINE, 200), (LINE.replace(b"203.0.113.9", b"203.0.113.8"), 403)):
        with server.connect() as wire:
            wire.send(line + packet(protocol, cgi(REMOTE_ADDR="198.51.100.1")))
            assert reply(protocol, wire).status == status


@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "eventlet", "asgi"))
@PROTOCOL
def test_a_client_that_leaves_is_noticed(pool: Pool, worker_class: str, protocol: str) -> None:
    server = serve(pool, worker_class, protocol)
    with server.connect() as wire:
        wire.send(packet(protocol, cgi("GET", "/stream?count=100000&size=10000")))
        wire.wait_begun()
        wire.reset()
    assert ask(server, protocol).status == 200


@PROTOCOL
def test_a_request_of_another_protocol_is_refused(pool: Pool, protocol: str) -> None:
    server = serve(pool, "sync", protocol)
    for other in {*PROTOCOLS, "http"} - {protocol}:
        with server.connect() as wire:
            wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" if other == "http" else packet(other, cgi()))
            status = reply(protocol, wire).status
            assert status == (501 if protocol == "uwsgi" else 400), other


def test_other_modifiers_of_uwsgi_are_not_implemented(pool: Pool) -> None:
    server = serve(pool, "sync", "uwsgi")
    with server.connect() as wire:
        wire.send(uwsgi(cgi(), modifier=5))
        assert reply("uwsgi", wire).status == 501
    with server.connect() as wire:
        wire.send(struct.pack("<BHB", 0, 6, 0) + b"\x01\x00a\xff\x00b")
        assert reply("uwsgi", wire).status == 400


@ALL_CLASSES
class TestFastCgi:
    """One connection, and requests one after another."""

    def test_connections_are_kept(self, pool: Pool, worker_class: str) -> None:
        server = serve(pool, worker_class, "fastcgi", keep_alive=30)
        with server.connect() as wire:
            for number in (1, 7, 300):
                body = b"x" * number * 1000
                client = f"198.51.100.{number % 200}"
                wire.send(fastcgi(cgi("POST", "/body?raw=1", body, REMOTE_ADDR=client), body, number, keep=True))
                assert parsed(stdout(wire, number)).json()["length"] == len(body)
                wire.send(fastcgi(cgi("GET", "/stream?count=2&size=3"), b"", number, keep=True))
                assert parsed(stdout(wire, number)).body == b"aaabbb"
            wire.send(fastcgi(cgi("HEAD", "/"), keep=True))
            assert parsed(stdout(wire), "HEAD").body == b""
            # Two at once: they are answered in their order.
            wire.send(fastcgi(cgi(), b"", 1, keep=True) + fastcgi(cgi(), b"", 2, keep=True))
            assert parsed(stdout(wire, 1)).status == parsed(stdout(wire, 2)).status == 200
            wire.send(fastcgi(cgi()))
            assert parsed(stdout(wire)).status == 200
            wire.closed()

    def test_the_connection_itself_is_answered(self, pool: Pool, worker_class: str) -> None:
        server = serve(pool, worker_class, "fastcgi", keep_alive=30)
        with server.connect() as wire:
            told = records(wire)
            wire.send(record(GET_VALUES, pairs({"FCGI_MPXS_CONNS": "", "FCGI_MAX_REQS": ""}), 0))
            assert next(told) == (VALUES, 0, pairs({"FCGI_MPXS_CONNS": "0"}))
            wire.send(record(42, b"?", 0))
            assert next(told) == (UNKNOWN_TYPE, 0, bytes([42, *[0] * 7]))
            wire.send(begin(2, role=3, keep=True) + record(PARAMS, b"", 2) + stdin(b"", 2))
            assert next(told) == (END, 2, struct.pack(">IB3x", 0, UNKNOWN_ROLE))
            wire.send(begin(3, keep=True) + record(ABORT, b"", 3))
            assert next(told)[:2] == (END, 3)
            params = record(PARAMS, pairs(cgi("POST", "/body?raw=1", b"abcdef"))) + record(PARAMS)
            # The second is refused, whether it comes before the content of the first or in its midst.
            wire.send(begin(keep=True) + begin(9) + params)
            assert next(told) == (END, 9, struct.pack(">IB3x", 0, CANNOT_MULTIPLEX))
            wire.send(record(STDIN, b"abc") + begin(8, keep=True) + record(PARAMS, b"x", 8))
            if worker_class not in ("asgi", "tornado", "aiohttp"):
                assert next(told) == (END, 8, struct.pack(">IB3x", 0, CANNOT_MULTIPLEX))
                wire.send(stdin(b"def"))
                assert parsed(stdout(wire)).json()["length"] == 6
                return
            got, refused = b"", 0
            wire.send(stdin(b"def"))
            for kind, number, content in told:
                if number == 8:
                    assert (kind, content[4]) == (END, CANNOT_MULTIPLEX)
                    refused += 1
                elif kind == END:
                    break
                else:
                    got += content
            assert refused == 1
            assert parsed(got).json()["length"] == 6

    def test_content_has_the_length_that_was_announced(self, pool: Pool, worker_class: str) -> None:
        server = serve(pool, worker_class, "fastcgi")
        for body in (b"abc", b"abcdefghi"):
            with server.connect() as wire:
                wire.send(fastcgi(cgi("POST", "/body?raw=1", b"abcdef"), body))
                assert b"Status: 400 " in wire.ended(), body
        with server.connect() as wire:
            wire.send(begin(keep=True) + record(PARAMS, pairs(cgi("POST", "/body?raw=1", b"abcdef"))) + record(PARAMS))
            wire.send(record(STDIN, b"ab") + record(ABORT))
            assert b"Status: 400 " in wire.ended()


@PROTOCOL
def test_unix_sockets_are_always_allowed(protocol: str) -> None:
    with Server(transport="unix", protocol=protocol, uwsgi_allow_from="192.0.2.1") as server:
        assert isinstance(server.address, str)
        with Wire(server.address) as wire:
            wire.send(packet(protocol, cgi()))
            assert reply(protocol, wire).body == b"Hello\n"
        server.log.wait(rf"Listening at: {protocol}\+unix:")


@PROTOCOL
def test_doors_speak_what_they_say(protocol: str) -> None:
    with Server(protocol=protocol, extra=("-b", "http://127.0.0.1:0")) as server:
        assert ask(server, protocol).status == 200
        port = int(server.log.wait(r"http://127\.0\.0\.1:(\d+)")[-1][1])
        with Wire(("127.0.0.1", port)) as wire:
            assert wire.get("/").body == b"Hello\n"


@PROTOCOL
def test_requests_go_to_idle_workers(protocol: str) -> None:
    """A worker whose only thread is busy passes on what it has accepted."""
    with Server(worker_class="sync", workers=2, protocol=protocol) as server:
        answers: list[int] = []

        def many(seconds: str) -> None:
            answers.append(ask(server, protocol, target=f"/sleep?s={seconds}").status)

        threads = [threading.Thread(target=many, args=(seconds,)) for seconds in ("0.5", *["0.01"] * 20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [200] * 21


@PROTOCOL
def test_waiting_requests_are_turned_away_in_their_form(protocol: str) -> None:
    options = {"worker_class": "sync", "queue_timeout": 0.2, "timeout": 30}
    with Server(protocol=protocol, **options) as server, server.connect() as busy:
        busy.send(packet(protocol, cgi("GET", "/sleep?s=1.5")))
        until(busy.is_all_read, "it was read")
        assert ask(server, protocol).status == 503
        assert reply(protocol, busy).status == 200


@PROTOCOL
def test_late_requests_are_answered_in_their_form(protocol: str) -> None:
    with Server(worker_class="gthread", protocol=protocol, request_timeout=0.3) as server:
        assert ask(server, protocol, target="/sleep?s=5").status == 504


@PROTOCOL
def test_vars_that_do_not_come_are_not_waited_for(protocol: str) -> None:
    with Server(protocol=protocol, header_timeout=1) as server, server.connect() as wire:
        wire.send(packet(protocol, cgi())[:40])
        assert reply(protocol, wire).status == 408


def test_a_half_closed_front_end_is_answered(pool: Pool) -> None:
    for protocol in PROTOCOLS:
        server = serve(pool, "gthread", protocol)
        with server.connect() as wire:
            wire.send(packet(protocol, cgi("POST", "/body?raw=1", b"abc"), b"abc"))
            wire.sock.shutdown(socket.SHUT_WR)
            assert reply(protocol, wire).json()["length"] == 3
