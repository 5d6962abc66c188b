"""HTTP/2: an effect for each setting."""

from __future__ import annotations

import time

from h2.settings import SettingCodes

from tests.compat.effects.shared import shared
from tests.compat.effects.tls import Secured
from tests.harness import Site
from tests.harness.http2 import CANCEL, ENHANCE_YOUR_CALM, Http2Wire
from tests.harness.tls import SecureWire

OWN = ("http2_max_window", "http2_idle_timeout", "http2_reset_limit", "http2_control_limit")
SERVED = "worker_class = 'gthread'\nhttp_protocols = 'h2,h1'\n"
CLEARTEXT = f"{SERVED}http2_cleartext = 'prior-knowledge'\n"


@shared
def bounded() -> Site:
    return Site(
        f"{CLEARTEXT}http2_max_concurrent_streams = 12\nhttp2_initial_window_size = 5000\n"
        "http2_max_header_list_size = 6000\nhttp2_max_window = '2M'\nhttp2_reset_limit = 10\n"
        "http2_control_limit = 20\n"
    )


def speak(server: Site) -> Http2Wire:
    return Http2Wire(server.connect())


def sees_http_protocols() -> None:
    with Secured(SERVED) as server:
        with SecureWire(server.address, server.client(alpn=("http/1.1", "h2"))) as wire:
            assert wire.secure.selected_alpn_protocol() == "h2"
            assert Http2Wire(wire).get("/hello").status == 200
        with SecureWire(server.address, server.client(alpn=("http/1.1",))) as wire:
            assert wire.secure.selected_alpn_protocol() == "http/1.1"
            assert wire.get("/hello").status == 200


def sees_http2_cleartext(bounded: Site) -> None:
    with speak(bounded) as wire:
        answer = wire.get("/hello")
        assert (answer.status, answer.ended) == (200, True)
    with Site(SERVED) as server, server.connect() as plain:
        assert plain.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").ended().startswith(b"HTTP/1.1 ")


def sees_http2_max_concurrent_streams(bounded: Site) -> None:
    with speak(bounded) as wire:
        wire.wait_setting(SettingCodes.MAX_CONCURRENT_STREAMS, 12)


def sees_http2_initial_window_size(bounded: Site) -> None:
    with speak(bounded) as wire:
        wire.wait_setting(SettingCodes.INITIAL_WINDOW_SIZE, 5000)


def sees_http2_max_header_list_size(bounded: Site) -> None:
    """Each field is smaller than `limit_request_field_size`, and all together are too large."""
    with speak(bounded) as wire:
        wire.wait_setting(SettingCodes.MAX_HEADER_LIST_SIZE, 6000)
        assert wire.get("/hello", ("x-a", "a" * 5000)).status == 200
        assert wire.get("/hello", ("x-a", "a" * 5000), ("x-b", "b" * 1000)).status == 431


def sees_http2_max_window(bounded: Site) -> None:
    """The window of the connection has its size at once."""
    with speak(bounded) as wire:
        wire.read_until(lambda: wire.client.outbound_flow_control_window == 2 << 20, "the window has its size")


def sees_http2_idle_timeout() -> None:
    with Site(f"{CLEARTEXT}http2_idle_timeout = 1\nkeepalive = 30\n") as server, speak(server) as wire:
        assert wire.get("/hello").status == 200
        began = time.monotonic()
        assert wire.end() == 0
        assert 0.5 < time.monotonic() - began < 30


def sees_http2_reset_limit(bounded: Site) -> None:
    with speak(bounded) as wire:
        for _ in range(10):
            wire.client.reset_stream(wire.begin("POST", "/hello", end=False), CANCEL)
        assert wire.get("/hello").status == 200
        while wire.goaway is None:
            wire.client.reset_stream(wire.begin("POST", "/hello", end=False), CANCEL)
            wire.flush()
            wire.read_for(0.02)
        assert wire.end() == ENHANCE_YOUR_CALM


def sees_http2_control_limit(bounded: Site) -> None:
    with speak(bounded) as wire:
        for number in range(100):
            wire.client.ping(number.to_bytes(8, "big"))
        wire.flush()
        assert wire.end() == ENHANCE_YOUR_CALM
