"""wsgi.file_wrapper: the same bytes whether the kernel copies them or Python reads them."""

from __future__ import annotations

from tests.harness import REFERENCE, Server, with_each


def content(size: int) -> bytes:
    pattern = bytes(range(256))
    return (pattern * (size // 256 + 1))[:size]


KINDS = ["disk", "unbuffered", "memory", "read_only", "no_close"]
READ = ["named", "spooled", "compressed", "of_archive", "flipped", "buffered_flipped"]
"""Where `read` gives, or may give, something else than the descriptor has."""
VALIDATED = with_each("raw", {"validated": "", "bare": "&raw"})


@VALIDATED
@with_each("kind", KINDS)
@with_each("size", [0, 1, 1000, 8192, 300_000])
def test_file_wrapper_sends_a_whole_file(server: Server, version: str, kind: str, size: int, raw: str) -> None:
    with server.connect() as wire:
        reply = wire.get(f"/files?kind={kind}&size={size}{raw}", version=version)
    assert (reply.status, reply.body == content(size)) == (200, True)


@VALIDATED
@with_each("kind", KINDS)
def test_from_where_the_file_stands(server: Server, version: str, kind: str, raw: str) -> None:
    with server.connect() as wire:
        reply = wire.get(f"/files?kind={kind}&size=1000&skip=300{raw}", version=version)
    if REFERENCE and kind == "disk" and raw:
        return  # it asks the descriptor, which is ahead of a buffered file
    assert reply.body == content(1000)[300:]


@with_each("kind", KINDS)
def test_file_wrapper_with_a_content_length(server: Server, version: str, kind: str) -> None:
    with server.connect() as wire:
        reply = wire.get(f"/files?kind={kind}&size=1000&length=1000&raw", version=version)
    assert reply.framing == "length"
    assert reply.body == content(1000)


@with_each("kind", KINDS)
def test_only_as_much_as_the_length_says(keeping_server: Server, kind: str) -> None:
    with keeping_server.connect() as wire:
        reply = wire.get(f"/files?kind={kind}&size=1000&length=100&raw")
        assert reply.body == content(100)
        if not reply.closes and wire.still_open():
            assert wire.get("/hello").body == b"Hello\n"


@with_each("kind", READ)
@with_each("size", [0, 1, 300_000])
def test_what_read_gives_is_sent(server: Server, kind: str, size: int) -> None:
    if REFERENCE:
        return  # it sends what the descriptor has
    reply = server.get(f"/files?kind={kind}&size={size}&raw")
    assert (reply.status, reply.body == content(size)) == (200, True)
    if size:
        assert server.get(f"/files?kind={kind}&size={size}&skip={size // 2}&raw").body == content(size)[size // 2 :]


def test_file_wrapper_of_a_pipe(server: Server) -> None:
    assert server.get("/files?kind=piped&size=5000&raw").body == content(5000)


def test_a_file_whose_size_is_not_known_before_it_is_read(server: Server) -> None:
    assert b"Max open files" in server.get("/files?kind=made_when_read&raw").body


def test_skip_and_length(server: Server, version: str) -> None:
    with server.connect() as wire:
        reply = wire.get("/files?kind=unbuffered&size=100000&skip=50000&length=30000&raw", version=version)
    assert reply.body == content(100000)[50000:80000]


def test_a_file_shorter_than_its_length_ends_the_connection(server: Server) -> None:
    with server.connect() as wire:
        wire.send(b"GET /files?kind=disk&size=10&length=1000&raw HTTP/1.1\r\nHost: t\r\n\r\n")
        got = wire.ended()
    assert got.endswith(content(10))


@VALIDATED
def test_a_large_file(server: Server, raw: str) -> None:
    size = 20_000_000
    with server.connect() as wire:
        reply = wire.get(f"/files?kind=disk&size={size}&length={size}{raw}")
    assert reply.body == content(size)


@with_each("kind", KINDS)
def test_a_middleware_may_iterate_it(server: Server, kind: str) -> None:
    assert server.get(f"/files?kind={kind}&size=20000&iterate=1").body == content(20000)


def test_a_block_size_may_be_given(server: Server) -> None:
    assert server.get("/files?kind=read_only&size=5000&block=100&raw").body == content(5000)


def test_file_wrapper_in_a_response_to_head(server: Server, version: str) -> None:
    with server.connect() as wire:
        reply = wire.ask("HEAD", "/files?kind=disk&size=1000&length=1000&raw", version=version)
    assert (reply.status, reply.get("content-length"), reply.body) == (200, "1000", b"")
