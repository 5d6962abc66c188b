"""The page of the admin listener: what it shows in a real browser, which asks no other server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness import Site, Wire, until
from tests.harness.chromium import Chromium
from tests.harness.core import serving
from tests.harness.server import free_port
from tests.harness.wire import Address


def fetch(admin: Address, path: str) -> Any:
    with Wire(admin) as wire:
        reply = wire.get(path)
    assert reply.status == 200
    assert reply.get("Content-Type") == "application/json"
    return json.loads(reply.body)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


def test_the_page_shows_what_the_workers_do(chromium: Chromium) -> None:
    port = free_port()
    with Site(f"admin_bind = '127.0.0.1:{port}'\nworker_class = 'gthread'\nworkers = 2\n", workers=2) as server:
        for _ in range(7):
            assert server.get("/hello").status == 200
        admin = ("127.0.0.1", port)
        until(lambda: len(fetch(admin, "/live.json")["samples"]) > 2, "the arbiter has noted something", every=0.2)
        url = f"http://127.0.0.1:{port}/"
        page = chromium.open(url)
        page.see("2 of 2 workers ready")
        page.see("gthread · Python")
        served = "[...document.querySelectorAll('#workers tr')].reduce((sum, row) => sum + +row.cells[7].innerText, 0)"
        until(lambda: page.run(served) == 7, "every request is told")
        until(lambda: page.run("document.querySelectorAll('#charts path').length") > 0, "lines are drawn")
        loaded = "performance.getEntriesByType('resource').map(entry => entry.name)"
        assert {name.split("?")[0] for name in page.run(loaded)} == {f"{url}live.json"}
        narrow = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        chromium.call("Emulation.setDeviceMetricsOverride", page.session, **narrow)
        assert page.run("document.documentElement.scrollWidth") <= 360
        colours = set()
        for scheme in ("light", "dark"):
            media = [{"name": "prefers-color-scheme", "value": scheme}]
            chromium.call("Emulation.setEmulatedMedia", page.session, features=media)
            colours.add(page.run("getComputedStyle(document.body).backgroundColor"))
        assert len(colours) == 2
        server.stop()
        page.see("The server is not answering")
        page.close()


def test_the_data_is_what_the_arbiter_has_noted_and_this_moment() -> None:
    port = free_port()
    with Site(f"admin_bind = '127.0.0.1:{port}'\nworkers = 1\nadmin_page = '/server'\n") as server:
        admin = ("127.0.0.1", port)
        assert server.get("/hello").status == 200
        live = until(
            lambda: d if len((d := fetch(admin, "/server/live.json"))["samples"]) > 2 else None, "two", every=0.2
        )
        times = [sample[0] for sample in live["samples"]]
        assert times == sorted(times)
        assert live["samples"][-1][live["columns"].index("requests")] == 1
        assert [worker["slot"] for worker in live["workers"]] == [1]
        assert live["workers"][0]["resident"] > 1 << 20
        later = fetch(admin, f"/server/live.json?since={times[-2]}")
        assert times[-2] not in {sample[0] for sample in later["samples"]}
        with Wire(admin) as wire:
            assert [wire.get(path).status for path in ("/server", "/", "/live.json")] == [200, 404, 404]


def hello(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return [b"hello"]


def test_who_may_see_it_is_a_setting_and_nothing_can_be_changed() -> None:
    with serving(hello, admin=True) as core:
        assert core.admin is not None
        with Wire(core.admin) as wire:
            page = wire.get("/")
            assert page.status == 200
            assert "default-src 'none'" in (page.get("Content-Security-Policy") or "")
            assert len(json.loads(wire.get("/live.json").body)["samples"]) == 1
        for path in ("/", "/live.json"):
            with Wire(core.admin) as wire:
                assert wire.ask("POST", path).status == 405
    for options in ({"admin_page": ""}, {"admin_allow": "192.0.2.1"}):
        with serving(hello, admin=True, **options) as core:
            assert core.admin is not None
            for path in ("/", "/live.json"):
                with Wire(core.admin) as wire:
                    assert wire.get(path).status in (403, 404)
