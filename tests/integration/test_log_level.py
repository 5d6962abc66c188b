"""`ctl log-level` reaches workers that run, whatever their class and whatever they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn.control.client import Control
from tricorn.workers import watch

from tests.compat.test_hosted import OWN, SERVING
from tests.harness import Site, until
from tests.harness.classes import ALL_CLASSES, configured
from tests.harness.wire import request

pytestmark = pytest.mark.skipif(watch.LEVEL_SIGNAL is None, reason="no realtime signals here")

HOOK = "def pre_request(worker, req):\n    worker.log.debug('seen: %s', req.path)\n"

NAMED = """\
import logging

def application(environ, start_response):
    logging.getLogger("gunicorn.error").debug("seen: %s", environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


@ALL_CLASSES
def test_a_worker_that_runs_takes_it(worker_class: str, tmp_path: Path) -> None:
    config = f"{configured(worker_class)}control_socket = '{tmp_path}/ctl'\n{HOOK}"
    with Site(config) as server, Control.connect(tmp_path / "ctl", timeout=60) as control:
        (pid,) = server.worker_pids()
        until(lambda: control.ask("status")["workers"]["serving"] == 1, "it serves")
        assert server.get("/hello?before").status == 200
        assert control.ask("log-level", level="debug") == {"level": "debug", "workers": 1}
        assert control.ask("status")["log_level"] == "debug"

        def is_seen() -> bool:
            assert server.get("/hello").status == 200
            return bool(server.log.matching("seen: /hello"))

        until(is_seen, "the worker says more", every=0.05)
        assert len(server.log.matching("seen: /hello")) <= server.log.text.count("seen:")
        control.ask("log-level", level="warning")
        count = len(server.log.matching("seen: "))

        def is_silent() -> bool:
            nonlocal count
            before, count = count, len(server.log.matching("seen: "))
            assert server.get("/hello").status == 200
            return len(server.log.matching("seen: ")) == before == count

        until(is_silent, "it says less", every=0.05)
        assert server.worker_pids() == [pid]


def test_a_hosted_worker_takes_it(tmp_path: Path) -> None:
    files = {"own.py": OWN, "serving.py": SERVING, "shop.py": NAMED}
    config = f"worker_class = 'own.Own'\ncontrol_socket = '{tmp_path}/ctl'\n"
    with (
        Site(config, app="shop:application", files=files) as server,
        Control.connect(tmp_path / "ctl", timeout=60) as control,
    ):
        until(lambda: control.ask("status")["workers"]["serving"] == 1, "it serves")
        control.ask("log-level", level="debug")

        def is_seen() -> bool:
            assert server.get("/now").body == b"ok"
            return bool(server.log.matching("seen: /now"))

        until(is_seen, "the worker says more", every=0.05)


def test_a_busy_worker_takes_it_when_its_python_runs_and_a_reload_ends_it(tmp_path: Path) -> None:
    config = f"worker_class = 'sync'\ntimeout = 0\ncontrol_socket = '{tmp_path}/ctl'\n"
    gate = tmp_path / "gate"
    files = {
        "app.py": "import os, time\nfrom shop import application as shop\n"
        "def application(environ, start_response):\n"
        "    while environ['PATH_INFO'] == '/wait' and not os.path.exists(environ['QUERY_STRING']):\n"
        "        time.sleep(0.01)\n"
        "    return shop(environ, start_response)\n",
        "shop.py": NAMED,
    }
    with (
        Site(config, app="app:application", files=files) as server,
        Control.connect(tmp_path / "ctl", timeout=60) as control,
    ):
        with server.connect() as wire:
            wire.send(request("GET", f"/wait?{gate}"))
            until(lambda: control.ask("requests")["count"] == 1, "it runs")
            control.ask("log-level", level="debug")
            gate.touch()
            assert wire.reply().status == 200
        server.log.wait("seen: /wait")
        control.ask("scale", workers=2)
        until(lambda: control.ask("status")["workers"]["serving"] == 2, "a second one")
        control.ask("reload", wait=True)
        assert control.ask("status")["log_level"] == "info"
        until(lambda: control.ask("status")["workers"]["leaving"] == 0, "the others have left")
        assert server.get("/afterwards").body == b"ok"
        assert not server.log.matching("seen: /afterwards")
