"""Extensions of ASGI: pathsend, early hints and trailers; and gunicorn's own informational responses."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from tests.conformance.asgi3.conftest import playing
from tests.conformance.asgi3.play import ANSWER, Stage, body, head, length, literal, piece, start
from tests.conftest import Pool
from tests.harness import Server
from tests.harness.front_end_client import FrontEndClient, has_no_such
from tests.harness.wire import Short


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.bin"
    path.write_bytes(bytes(range(251)) * 4000)
    return path


def pathsend(path: Path | str) -> dict[str, object]:
    return {"type": "http.response.pathsend", "path": str(path)}


def test_pathsend_extension(stage: Stage, file: Path, version: str) -> None:
    size = file.stat().st_size
    reply = stage.play(start(200, length(size)), ("send", pathsend(file)), version=version)
    assert (reply.framing, reply.body == file.read_bytes()) == ("length", True)


def test_pathsend_without_a_length(stage: Stage, file: Path, version: str) -> None:
    reply = stage.play(start(), ("send", pathsend(file)), version=version)
    assert reply.body == file.read_bytes()


def test_pathsend_of_nothing(stage: Stage, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    assert stage.play(start(200, length(0)), ("send", pathsend(empty))).body == b""


def test_pathsend_of_a_file_that_is_made_as_it_is_read(stage: Stage, version: str) -> None:
    """Its size is 0 for stat(2)."""
    path = Path("/proc/sys/kernel/ostype")
    assert stage.play(start(), ("send", pathsend(path)), version=version).body == path.read_bytes() != b""
    assert stage.play(start(200, length(3)), ("send", pathsend(path)), version=version).body == path.read_bytes()[:3]


def test_pathsend_of_a_long_file_is_not_the_loops_work(stage: Stage, tmp_path: Path) -> None:
    """proc(5), wchar: what each thread has caused to be written, by sendfile(2) as well."""
    path = tmp_path / "long"
    size = 64 << 20
    with path.open("wb") as long:
        long.truncate(size)
        long.write(b"x")
    pid = stage.server.worker_pid()
    loop = Path(f"/proc/{pid}/task/{pid}/io")

    def written() -> int:
        return int(re.search(r"wchar: (\d+)", loop.read_text())[1])  # type: ignore[index]

    before = written()
    with stage.connect() as wire:
        wire.send(stage.request(start(200, length(size)), ("send", pathsend(path)), ("say", "sent")))
        assert len(wire.reply().body) == size
    assert stage.told(1) == ["sent"]
    assert written() - before < size // 256


def test_pathsend_completes_the_response(stage: Stage, file: Path) -> None:
    size = file.stat().st_size
    with stage.connect() as wire:
        for _ in range(2):
            wire.send(stage.request(start(200, length(size)), ("send", pathsend(file)), ("say", "sent")))
            assert wire.reply().body == file.read_bytes()
    assert stage.told(2) == ["sent", "sent"]


def test_pathsend_to_head(stage: Stage, file: Path) -> None:
    reply = stage.play(start(200, length(file.stat().st_size)), ("send", pathsend(file)), method="HEAD")
    assert (reply.status, reply.body, reply.get("content-length")) == (200, b"", str(file.stat().st_size))


def test_pathsend_of_a_missing_file_says_which(stage: Stage, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    stage.play(start(), ("protest", pathsend(missing)), body(b"done"))
    assert stage.told(1) == [("FileNotFoundError", errno.ENOENT, missing)]


def test_pathsend_is_offered_only_where_it_was_asked_for(server: Server, pool: Pool) -> None:
    """Middleware that knows start and body only, as brotli-asgi does, loses files that are sent so."""
    offering = Stage(playing(pool, "asyncio", asgi_pathsend=True))
    name = "http.response.pathsend"
    assert name not in literal(server, "/scope")["extensions"]
    assert name in literal(offering.server, "/scope")["extensions"]
    assert offering.play().status == 500
    offering.server.log.wait(
        "returned without a response; a middleware that compresses may have dropped http.response.pathsend"
    )


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/", 5])
def test_pathsend_of_what_is_no_file_is_refused(stage: Stage, path: str) -> None:
    message = {"type": "http.response.pathsend", "path": path}
    reply = stage.play(start(), ("attempt", message), body(b"done"))
    assert stage.told(1) != [None]
    assert reply.body == b"done"


def test_pathsend_of_less_than_the_length_says(stage: Stage, file: Path) -> None:
    with stage.connect() as wire:
        wire.send(stage.request(start(200, length(file.stat().st_size + 1)), ("send", pathsend(file))))
        with pytest.raises(Short):
            wire.reply()
    assert stage.alive()


def test_pathsend_before_the_start(stage: Stage, file: Path) -> None:
    assert stage.play(("attempt", pathsend(file)), *ANSWER).body == b"done"
    assert stage.told(1) != [None]


HINT = {"type": "http.response.early_hint", "links": [b"</style.css>; rel=preload", b"</a.js>; rel=preload"]}


def test_early_hints(stage: Stage) -> None:
    """The specification puts them after the start, of which nothing is sent before the first piece of the body."""
    reply = stage.play(start(), ("send", HINT), ("send", {**HINT, "links": [b"</b>; rel=preload"]}), body(b"done"))
    assert reply.body == b"done"
    assert [interim.status for interim in reply.interims] == [103, 103]
    assert reply.interims[0].all("link") == ["</style.css>; rel=preload", "</a.js>; rel=preload"]
    assert reply.get("link") is None


def test_early_hints_before_the_start(stage: Stage) -> None:
    """Later than that they would come for an application that has to think about its status."""
    reply = stage.play(("send", HINT), *ANSWER)
    assert [interim.status for interim in reply.interims] == [103]
    assert reply.body == b"done"


def test_informational_as_gunicorn_has_it(stage: Stage) -> None:
    message = {"type": "http.response.informational", "status": 103, "headers": [(b"link", b"</a>; rel=preload")]}
    reply = stage.play(("send", message), *ANSWER)
    assert [(interim.status, interim.get("link")) for interim in reply.interims] == [(103, "</a>; rel=preload")]
    assert reply.body == b"done"


def test_no_early_hints_for_an_old_client(stage: Stage) -> None:
    reply = stage.play(start(), ("send", HINT), body(b"done"), version="1.0")
    assert (reply.body, reply.interims) == (b"done", [])


def test_early_hints_inject_nothing(stage: Stage) -> None:
    reply = stage.play(start(), ("attempt", {**HINT, "links": [b"</a>\r\nX-Injected: yes"]}), body(b"done"))
    everything = [*reply.fields, *(field for interim in reply.interims for field in interim.fields)]
    assert "x-injected" not in {name.lower() for name, _ in everything}
    assert reply.body == b"done"


TE = [("TE", "trailers")]


def trailers(*fields: tuple[bytes, bytes], more: bool = False) -> dict[str, object]:
    return {"type": "http.response.trailers", "headers": list(fields), "more_trailers": more}


@pytest.mark.parametrize(("fields", "named"), [(TE, [b"trailer: x-sum"]), ([], [])], ids=["asked for", "not"])
def test_the_names_of_trailers_stand_in_the_head(
    stage: Stage, fields: list[tuple[str, str]], named: list[bytes]
) -> None:
    """RFC 9110 section 6.6.2; of trailers that do not follow nothing is said."""
    steps = [start(200, (b"Trailer", b"x-sum"), trailers=True), body(b"done"), ("send", trailers((b"x-sum", b"9")))]
    with stage.connect() as wire:
        wire.send(stage.request(*steps, fields=[*fields, ("Connection", "close")]))
        head_bytes = wire.ended().partition(b"\r\n\r\n")[0]
    assert [line for line in head_bytes.split(b"\r\n") if line.lower().startswith(b"trailer:")] == named
    assert stage.play(start(200, (b"Trailer", b"x-sum")), body(b"done"), fields=fields).all("trailer") == []


def told_trailers(stage: Stage, *steps: tuple[object, ...], fields: list[tuple[str, str]]) -> bytes:
    with stage.connect() as wire:
        wire.send(stage.request(*steps, fields=[*fields, ("Connection", "close")]))
        return wire.ended().partition(b"\r\n\r\n")[2]


def test_trailers_extension(stage: Stage) -> None:
    steps = [start(200, (b"trailer", b"x-sum"), trailers=True), body(b"done"), ("send", trailers((b"x-sum", b"9")))]
    assert told_trailers(stage, *steps, fields=TE) == b"4\r\ndone\r\n0\r\nx-sum: 9\r\n\r\n"


def test_trailers_in_several_messages(stage: Stage) -> None:
    steps = [
        start(200, trailers=True),
        body(b"one", True),
        body(b"two"),
        ("send", trailers((b"x-a", b"1"), more=True)),
        ("send", trailers((b"x-b", b"2"))),
    ]
    assert told_trailers(stage, *steps, fields=TE).endswith(b"0\r\nx-a: 1\r\nx-b: 2\r\n\r\n")


def test_trailers_are_only_for_those_who_ask(stage: Stage) -> None:
    if stage.server.wire_type is FrontEndClient:
        has_no_such()
    steps = [start(200, trailers=True), body(b"done"), ("send", trailers((b"x-sum", b"9")))]
    assert told_trailers(stage, *steps, fields=[]) == b"4\r\ndone\r\n0\r\n\r\n"


def test_the_response_is_complete_when_the_trailers_are(stage: Stage) -> None:
    with stage.connect() as wire:
        for _ in range(2):
            wire.send(stage.request(start(200, trailers=True), body(b"done"), ("send", trailers()), fields=TE))
            assert wire.reply().body == b"done"


@pytest.mark.parametrize("bad", [(b"x-a", b"a\r\nx-injected: yes"), (b"content-length", b"5"), (b"x a", b"1")])
def test_trailers_inject_nothing(stage: Stage, bad: tuple[bytes, bytes]) -> None:
    steps = [start(200, trailers=True), body(b"done"), ("attempt", trailers(bad)), ("attempt", trailers())]
    rest = told_trailers(stage, *steps, fields=TE)
    assert b"injected" not in rest
    assert b"content-length" not in rest
    assert b"x a" not in rest


def test_trailers_that_were_not_announced_are_no_message(stage: Stage) -> None:
    reply = stage.play(("send", head()), ("send", piece(b"one", True)), ("attempt", trailers()), body(b"two"))
    assert stage.told(1) != [None]
    assert reply.body == b"onetwo"
