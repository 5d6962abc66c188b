"""What people run: the same small application in five frameworks, under every way to wait."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.conftest import Pool
from tests.harness import Server, each
from tests.harness.cases import with_each
from tests.harness.classes import WSGI
from tests.harness.needs import needs

APPS = Path(__file__).parent / "apps"
FILE = (APPS / "file.bin").read_bytes()
FRAMEWORKS = ["flask", "django", "bottle", "falcon", "pyramid"]


@pytest.fixture(scope="module", params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> str:
    needs(request.param)
    return str(request.param)


@pytest.fixture(scope="module", params=each(*WSGI))
def server(request: pytest.FixtureRequest, pool: Pool, framework: str) -> Server:
    return pool.get(f"{framework}_app:application", chdir=APPS, worker_class=request.param)


def multipart(note: str, name: str, data: bytes) -> tuple[bytes, tuple[str, str]]:
    mark = "f0e1d2c3b4a5"
    body = (
        f'--{mark}\r\nContent-Disposition: form-data; name="note"\r\n\r\n{note}\r\n'
        f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode() + data
    return body + f"\r\n--{mark}--\r\n".encode(), ("Content-Type", f"multipart/form-data; boundary={mark}")


def test_wsgi_framework_routing(server: Server) -> None:
    assert server.get("/hello/world").body == b"Hello, world!"
    assert server.get("/hello/w%C3%B6rld").body == "Hello, w\u00f6rld!".encode()


def test_wsgi_framework_not_found(server: Server) -> None:
    assert server.get("/nowhere").status == 404


def test_wsgi_framework_form(server: Server) -> None:
    form = ("Content-Type", "application/x-www-form-urlencoded")
    assert server.post("/form", b"a=1&b=two+words", form).json() == {"a": "1", "b": "two words"}


@with_each("size", [10, 100_000, 4_000_000])
def test_wsgi_framework_upload(server: Server, size: int) -> None:
    data = (FILE * (size // len(FILE) + 1))[:size]
    body, kind = multipart("a note", "name.bin", data)
    got = server.post("/upload", body, kind).json()
    assert got == {"name": "name.bin", "size": size, "sha256": hashlib.sha256(data).hexdigest(), "note": "a note"}


def test_an_upload_in_chunks(server: Server, framework: str) -> None:
    if framework != "flask":
        pytest.skip("the framework reads no body that has no length, or undoes the coding a second time")
    body, kind = multipart("a note", "name.bin", FILE)
    with server.connect() as wire:
        head = (
            f"POST /upload HTTP/1.1\r\nHost: t\r\n{kind[0]}: {kind[1]}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        wire.send(head, b"%x\r\n%b\r\n" % (len(body), body), b"0\r\n\r\n")
        assert wire.reply().json()["size"] == len(FILE)


def test_wsgi_framework_stream(server: Server) -> None:
    reply = server.get("/stream")
    assert reply.framing == "chunked"
    assert reply.body == b"".join(b"line %d\n" % number for number in range(100))


def test_wsgi_framework_cookies(server: Server) -> None:
    reply = server.get("/cookies")
    assert reply.body == b"never"
    assert sorted(cookie.partition(";")[0] for cookie in reply.all("set-cookie")) == ["other=b", "seen=yes"]
    assert server.get("/cookies", ("Cookie", "seen=yes; other=b")).body == b"yes"


def test_wsgi_framework_file_response(server: Server) -> None:
    reply = server.get("/file")
    assert reply.body == FILE
    assert reply.get("content-length") == str(len(FILE))


def test_wsgi_framework_response_to_head(server: Server) -> None:
    with server.connect() as wire:
        assert wire.ask("HEAD", "/file").status in (200, 405)


def test_an_error_page(server: Server) -> None:
    reply = server.get("/error")
    assert reply.status == 500
    assert b"framework marker" not in reply.body
    assert server.get("/hello/again").body == b"Hello, again!"
