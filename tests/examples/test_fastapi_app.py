"""examples/fastapi_app does what its page says: over HTTP, over WebSockets, and in a browser."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.harness import Server, until
from tests.harness.chromium import Chromium, Page
from tests.harness.needs import needs

FASTAPI_APP = Path(__file__).resolve().parents[2] / "examples" / "fastapi_app"

needs("fastapi", "python_multipart")
client = pytest.importorskip("websockets.sync.client")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("app:app", chdir=FASTAPI_APP, worker_class="asgi") as server:
        yield server


@pytest.fixture(autouse=True)
def nobody_is_left_in_the_chat(server: Server) -> Iterator[None]:
    yield
    until(lambda: people(server) == [], "everybody who was in the chat has left")


def people(server: Server) -> Any:
    return server.get("/people").json()


class Chatter:
    """A member of the chat, without a browser."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    def say(self, text: str) -> None:
        self.socket.send(text)

    def hear(self) -> Any:
        return json.loads(self.socket.recv(timeout=30))


@contextmanager
def chatter(server: Server, name: str) -> Iterator[Chatter]:
    with client.connect(f"ws://127.0.0.1:{server.port}/chat?name={quote(name)}", proxy=None) as socket:
        chatter = Chatter(socket)
        assert chatter.hear() == {"from": "", "text": f"{name} came in"}
        yield chatter


def test_fastapi_json(server: Server) -> None:
    items = [{"name": "hat", "price": 12.5, "amount": 2}, {"name": "feather", "price": 1}]
    reply = server.post("/total", json.dumps(items).encode(), ("Content-Type", "application/json"))
    assert reply.json() == {"total": 26.0}
    reply = server.post("/total", b'[{"name": "hat"}]', ("Content-Type", "application/json"))
    assert reply.status == 422
    assert reply.json()["detail"][0]["loc"] == ["body", 0, "price"]


def test_which_process_answers(server: Server) -> None:
    assert server.get("/worker").json()["pid"] == server.worker_pid()


def test_an_upload_that_is_larger_than_buffers(server: Server) -> None:
    content = bytes(range(256)) * 20_000
    head = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="five.bin"\r\n\r\n'
    body = head + content + b"\r\n--edge--\r\n"
    reply = server.post("/upload", body, ("Content-Type", "multipart/form-data; boundary=edge"))
    digest = hashlib.sha256(content).hexdigest()
    assert reply.json() == {"name": "five.bin", "size": len(content), "sha256": digest}


def test_fastapi_pages(server: Server) -> None:
    page = server.get("/")
    assert page.status == 200
    assert page.get("content-type") == "text/html; charset=utf-8"
    assert page.body == (FASTAPI_APP / "chat.html").read_bytes()
    assert b"swagger" in server.get("/docs").body
    assert server.get("/nowhere").status == 404


def test_fastapi_websocket_chat(server: Server) -> None:
    with chatter(server, "Ann") as ann:
        with chatter(server, "Bob") as bob:
            assert ann.hear() == {"from": "", "text": "Bob came in"}
            assert people(server) == ["Ann", "Bob"]
            ann.say("Good evening, Bob — ça va?")
            assert bob.hear() == ann.hear() == {"from": "Ann", "text": "Good evening, Bob — ça va?"}
            bob.say("b" * 5000)
            assert ann.hear() == bob.hear() == {"from": "Bob", "text": "b" * 1000}
        assert ann.hear() == {"from": "", "text": "Bob left"}


def test_the_chat_as_server_sent_events(server: Server) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.request("GET", "/events")
        events = connection.getresponse()
        assert events.getheader("content-type") == "text/event-stream; charset=utf-8"
        assert events.readline() == b": welcome\n", "it comes before there is anything to tell"
        assert events.readline() == b"\n"
        with chatter(server, "Ann") as ann:
            for line in ({"from": "", "text": "Ann came in"}, {"from": "Ann", "text": "Hello?"}):
                prefix, _, data = events.readline().partition(b": ")
                assert prefix == b"data"
                assert json.loads(data) == line
                assert events.readline() == b"\n"
                ann.say("Hello?")
            ann.hear()
    assert people(server) == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.fixture
def pages(browser: Chromium, server: Server) -> Iterator[list[Page]]:
    """Two windows that show the chat."""
    pages = [browser.open(f"http://127.0.0.1:{server.port}/") for _ in range(2)]
    yield pages
    for page in pages:
        page.close()


def come_in(page: Page, name: str) -> None:
    page.fill("[name=name]", name)
    page.click("button")
    page.see(f"connected as {name}")


def say(page: Page, text: str) -> None:
    page.fill("[name=text]", text)
    page.click("button")


def test_two_browser_windows_chat(server: Server, pages: list[Page]) -> None:
    ann, bob = pages
    come_in(ann, "Ann")
    come_in(bob, "Bob")
    ann.see("Bob came in")
    assert people(server) == ["Ann", "Bob"]
    say(ann, "Good evening, <b>Bob</b>")
    for page in pages:
        page.see("Ann: Good evening, <b>Bob</b>")
    say(bob, "Good evening, Ann ☕")
    for page in pages:
        page.see("Bob: Good evening, Ann ☕")


def test_a_window_that_is_closed_has_left(server: Server, pages: list[Page]) -> None:
    ann, bob = pages
    come_in(ann, "Ann")
    come_in(bob, "Bob")
    bob.close()
    ann.see("Bob left")
    assert people(server) == ["Ann"]
