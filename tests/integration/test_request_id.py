"""Ids of requests and the time they waited: `X-Request-ID`, `X-Request-Start`, and what becomes of them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server
from tests.harness.core import Serving, serving
from tests.harness.deadline import until
from tests.harness.wire import Reply, request

FRESH = re.compile(r"[0-9a-f]{32}")


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Tells what it was told."""
    match environ["PATH_INFO"]:
        case "/own":
            start_response("200 OK", [("x-request-id", "mine")])
        case "/fails":
            raise ValueError("no")
        case _:
            start_response("200 OK", [("Content-Type", "application/json")])
    names = ("tricorn.request_id", "HTTP_X_REQUEST_ID", "tricorn.queue_time")
    return [json.dumps({name: environ.get(name) for name in names}).encode()]


@pytest.fixture(scope="module")
def core() -> Iterator[Serving]:
    with serving(application, request_id=True) as core:
        yield core


def ask(core: Serving, *fields: tuple[str, str], path: str = "/") -> Reply:
    with core.wire() as wire:
        return wire.get(path, *fields)


def test_a_request_without_an_id_gets_one(core: Serving) -> None:
    ids = set()
    with core.wire() as wire:
        for _ in range(100):
            reply = wire.get("/")
            told = reply.json()
            assert reply.all("X-Request-ID") == [told["tricorn.request_id"]]
            assert told["HTTP_X_REQUEST_ID"] == told["tricorn.request_id"]
            assert FRESH.fullmatch(told["tricorn.request_id"])
            ids.add(told["tricorn.request_id"])
    assert len(ids) == 100


@pytest.mark.parametrize("given", ["a", "0af7651916cd43dd8448eb211c80319c", "Root=1-67891233-abcdef:0+/._@", "x" * 128])
def test_a_good_id_of_the_client_is_kept(core: Serving, given: str) -> None:
    reply = ask(core, ("X-Request-ID", given))
    assert reply.all("X-Request-ID") == [given]
    assert reply.json()["tricorn.request_id"] == reply.json()["HTTP_X_REQUEST_ID"] == given


@pytest.mark.parametrize("given", ["", "a b", 'a"b', "<script>", "a,b", "x" * 129, "caf\xe9", "a;b", "%0a"])
def test_another_one_is_replaced_everywhere(core: Serving, given: str) -> None:
    reply = ask(core, ("X-Request-ID", given))
    [told] = reply.all("X-Request-ID")
    assert FRESH.fullmatch(told)
    assert reply.json()["tricorn.request_id"] == reply.json()["HTTP_X_REQUEST_ID"] == told


def test_two_request_id_headers_are_ignored(core: Serving) -> None:
    reply = ask(core, ("X-Request-ID", "one"), ("X-Request-ID", "two"))
    assert FRESH.fullmatch(reply.json()["HTTP_X_REQUEST_ID"])


def test_an_id_of_the_application_is_sent_as_it_is(core: Serving) -> None:
    assert ask(core, ("X-Request-ID", "given"), path="/own").all("X-Request-ID") == ["mine"]


def test_the_page_of_an_application_error_has_the_id(core: Serving) -> None:
    reply = ask(core, ("X-Request-ID", "given"), path="/fails")
    assert (reply.status, reply.all("X-Request-ID")) == (500, ["given"])


def test_without_the_setting_there_is_none() -> None:
    with serving(application) as core:
        reply = ask(core, ("X-Request-ID", "a b"))
        assert reply.get("X-Request-ID") is None
        assert reply.json()["tricorn.request_id"] is None
        assert reply.json()["HTTP_X_REQUEST_ID"] == "a b"


def test_the_access_log_has_both(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = {"access_log": str(log), "access_log_format": "%(request_id)s %(queue_time)s %(s)s"}
    with serving(application, request_id=True, **options) as core:
        ask(core, ("X-Request-ID", "good"), ("X-Request-Start", f"t={time.time() - 0.5}"))
        ask(core, path="/fails")
        with core.wire() as wire:
            wire.send(b"GET / HTTP/1.1\r\nX-Request-ID: refused\r\n\r\n").reply()
        lines = until(lambda: log.read_text().splitlines()[2:] and log.read_text().splitlines(), "three lines")
    first, second, third = (line.split() for line in lines)
    assert first[0] == "good"
    assert 500_000 <= int(first[1]) < 20_000_000
    assert FRESH.fullmatch(second[0])
    assert second[2] == "500"
    assert third == ["refused", "-", "400"]


class TestQueueTime:
    def waited(self, core: Serving, start: str) -> float:
        reply = ask(core, ("X-Request-Start", start))
        waited = reply.json()["tricorn.queue_time"]
        assert isinstance(waited, float)
        return waited

    @pytest.mark.parametrize("form", ["t={0:.3f}", "{0:.6f}", "t={1:.0f}", "{1:.0f}", "t={2:.0f}", "{2:.0f}"])
    def test_it_counts_from_what_a_trusted_front_end_says(self, core: Serving, form: str) -> None:
        then = time.time() - 100
        assert 99.9 <= self.waited(core, form.format(then, then * 1e3, then * 1e6)) < 120

    @pytest.mark.parametrize("start", ["soon", "", "t=", "1", "99999999999999999999", "-5", "1e9", "t=1.2.3"])
    def test_nonsense_is_passed_over(self, core: Serving, start: str) -> None:
        assert 0 <= self.waited(core, start) < 10

    def test_the_future_is_passed_over(self, core: Serving) -> None:
        assert 0 <= self.waited(core, f"t={time.time() + 100}") < 10

    def test_a_stranger_is_not_believed(self) -> None:
        with serving(application, forwarded_allow_ips="10.0.0.1") as core:
            assert self.waited(core, f"t={time.time() - 100}") < 10
            assert ask(core).json()["tricorn.queue_time"] >= 0

    def test_it_counts_from_the_complete_head(self, core: Serving) -> None:
        with core.wire() as wire:
            wire.send(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n").interim()
            begin = time.monotonic()
            time.sleep(0.05)  # what is measured
            reply = wire.send(b"x").reply()
            assert 0.04 < reply.json()["tricorn.queue_time"] < time.monotonic() - begin + 0.1


def test_workers_never_make_the_same_ids() -> None:
    with Server(worker_class="sync", workers=3, request_id=True, preload=True) as server:
        ids = [server.get("/hello").get("X-Request-ID") for _ in range(60)]
    assert len(set(ids)) == 60
    assert all(id_ and FRESH.fullmatch(id_) for id_ in ids)


def test_what_the_application_never_sees_is_answered_with_the_clients_id() -> None:
    """The one it gave; a request that is refused gets none of ours."""
    with serving(application, request_id=True, limit_request_body=10) as core:
        for fields, expected in [((("X-Request-ID", "from-the-client"),), "from-the-client"), ((), None)]:
            with core.wire() as wire:
                reply = wire.send(request("POST", "/", [*fields, ("Content-Length", "11")])).reply()
                assert (reply.status, reply.get("X-Request-ID"), reply.closes) == (413, expected, True)
