"""How long the baton is held when there is much to do at once.

`Server.stop` fails a test whose server complains of a hold that worked for more than a millisecond. Only a core that
was built to measure does so: `make baton`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness import Server
from tests.harness.certificates import Authority
from tests.harness.deadline import until
from tests.harness.slow import Crowd
from tests.harness.tls import SecureWire, client
from tests.harness.wire import Wire, request

pytestmark = pytest.mark.skipif(
    not os.environ.get("TRICORN_TEST_TRACKED"), reason="needs a core that measures the baton: make baton"
)
MIB = 1 << 20
CONFIG = """
from tricorn.workers import core_options

original = core_options.core_options
core_options.core_options = lambda *args, **keywords: original(*args, **keywords) | {"fault_point": "long_hold"}
"""


def at_once(count: int, work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(count) as threads:
        for done in [threads.submit(work) for _ in range(count)]:
            done.result()


def test_a_hold_that_is_too_long_is_told(tmp_path: Path) -> None:
    """Else all other tests would pass whatever happens."""
    config = tmp_path / "conf.py"
    config.write_text(CONFIG)
    with Server(worker_class="gthread", config=config, expects="the baton was held") as server:
        server.log.wait(r"the baton was held for \d+ µs of processor time .* taken at .*calls\.rs:\d+")


def test_fast_uploads_and_downloads_by_tls(tmp_path: Path) -> None:
    """A burst of reads is decrypted under the baton."""
    authority = Authority(tmp_path)
    context, pair = client(authority), authority.issue("server").pair
    with Server(worker_class="gthread", certificate=pair, body_buffer_size=64 * MIB) as server:

        def move() -> None:
            body = bytes(16 * MIB)
            for _ in range(4):
                with SecureWire(server.address, context) as wire:
                    assert wire.send(request("POST", "/upload?how=all", body=body)).reply().status == 200
                    assert len(wire.get(f"/blob?size={16 * MIB}").body) == 16 * MIB

        at_once(4, move)


@pytest.mark.parametrize("options", [{}, {"body_buffer_size": 64 * MIB}], ids=["disk", "memory"])
@pytest.mark.parametrize("worker_class", ["sync", "gthread", "gevent"])
def test_fast_uploads(worker_class: str, options: dict[str, int]) -> None:
    with Server(worker_class=worker_class, **options) as server:

        def upload() -> None:
            body = bytes(16 * MIB)
            for _ in range(4):
                with Wire(server.address) as wire:
                    assert wire.send(request("POST", "/upload?how=all", body=body)).reply().status == 200

        at_once(4, upload)


@pytest.mark.parametrize("worker_class", ["gthread", "asgi"])
def test_a_crowd_that_comes_to_its_deadline_at_once(worker_class: str) -> None:
    half_a_head = b"GET / HTTP/1.1\r\n"
    with (
        Server(worker_class=worker_class, header_timeout=2, keep_alive=2) as server,
        Crowd(server.address, 1000) as silent,
        Crowd(server.address, 1000, first=half_a_head) as half,
    ):
        silent.wait_all_ended()
        half.wait_all_ended()


@pytest.mark.parametrize("worker_class", ["gthread", "asgi"])
def test_a_crowd_that_is_there_when_the_worker_leaves(worker_class: str) -> None:
    with (
        Server(worker_class=worker_class, keep_alive=60) as server,
        Crowd(server.address, 2000, first=request("GET", "/hello")) as idle,
    ):
        until(lambda: all(client.heard for client in idle.clients), "all are answered")
        server.stop()


def test_heads_that_are_too_much_memory() -> None:
    with (
        Server(worker_class="sync", head_buffer_total=4 * MIB) as server,
        Crowd(server.address, 1500, first=b"GET / HTTP/1.1\r\n"),
    ):
        assert server.get("/hello").status == 200


def test_large_responses_to_slow_and_fast_clients() -> None:
    with Server(worker_class="gthread") as server:

        def download() -> None:
            with Wire(server.address, receive_buffer=65536) as wire:
                assert len(wire.get("/stream?count=1&size=16000000&length=1").body) == 16_000_000

        at_once(4, download)
