"""The application's own metrics, which prometheus_client keeps in files, are among the server's."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from tests.harness import Site, until
from tests.harness.core import serving
from tests.harness.proc import children
from tests.harness.scrape import OPEN, scrape, value
from tests.harness.server import free_port
from tests.harness.wire import Wire

COUNTING = """\
import os

from prometheus_client import Counter, Gauge, Histogram

ORDERS = Counter("orders", "Orders.", ["kind"])
LIVE = Gauge("live", "Live workers.", multiprocess_mode="livesum")
EACH = Gauge("each", "Of each worker.")
TIME = Histogram("time_seconds", "Time.", buckets=(0.1, 1, 2_500_000))
LIVE.set(1)


def application(environ, start_response):
    kind = environ["PATH_INFO"][1:]
    ORDERS.labels(kind).inc()
    EACH.set(7)
    TIME.observe(0.5)
    if kind == "fork":
        pid = os.fork()
        if pid == 0:
            ORDERS.labels("child").inc()
            os._exit(0)
        os.waitpid(pid, 0)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


def counting(directory: Path, config: str, **options: Any) -> tuple[Site, tuple[str, int]]:
    port = free_port()
    text = f"admin_bind = '127.0.0.1:{port}'\n{config}"
    environ = {"PROMETHEUS_MULTIPROC_DIR": str(directory)}
    files = {"counting.py": COUNTING}
    return Site(text, app="counting:application", files=files, env=environ, **options), ("127.0.0.1", port)


def names(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


def test_the_applications_metrics_survive_their_workers_and_their_files_do_not_become_more(tmp_path: Path) -> None:
    directory = tmp_path / "metrics"
    directory.mkdir()
    (directory / "counter_4711.db").write_bytes(b"of another server")
    server, admin = counting(directory, "worker_class = 'sync'\nworkers = 2\n", workers=2)
    asked = 0

    def ask(times: int) -> None:
        nonlocal asked
        for _ in range(times):
            assert server.get("/a").status == 200
        asked += times

    def orders() -> float:
        return value(scrape(admin), "orders_total", kind="a")

    def new_workers(old: set[int]) -> None:
        until(lambda: len(children(server.pid)) == 2 and not old <= set(children(server.pid)), "new workers")
        until(lambda: value(scrape(admin), "live") == 2, "the gauge is of the workers that live", every=0.2)

    with server:
        ask(20)
        until(lambda: orders() == asked, "all are counted", every=0.2)
        assert "counter_4711.db" not in names(directory)
        for _ in range(2):
            old = set(server.worker_pids())
            server.signal(signal.SIGHUP)
            until(lambda old=old: not old & set(children(server.pid)), "old workers are gone")
            new_workers(old)
            ask(5)
        old = set(server.worker_pids())
        os.kill(min(old), signal.SIGKILL)
        new_workers(old)
        ask(5)
        samples = until(lambda: s if value(s := scrape(admin), "orders_total", kind="a") == asked else None, "all")
        assert value(samples, "time_seconds_count") == asked
        assert value(samples, "time_seconds_bucket", le="2.5e+06") == asked
        assert {dict(labels)["pid"] for name, labels in samples if name == "each"} <= {"1", "2", "3", "4"}
        assert value(samples, "application_files", state="broken") == 0
        # Four slots at most: two workers, and two that take their places.
        kinds = ("counter", "gauge_all", "gauge_livesum", "histogram")
        assert names(directory) <= {f"{kind}_{slot}.db" for kind in kinds for slot in (1, 2, 3, 4)}
        assert server.get("/fork").status == 200
        until(lambda: value(scrape(admin), "orders_total", kind="child") == 1, "the child's count", every=0.2)


def test_rubbish_in_the_directory_harms_nobody(tmp_path: Path) -> None:
    server, admin = counting(tmp_path, "worker_class = 'sync'\nworkers = 1\n")
    with server:
        assert server.get("/a").status == 200
        (pid,) = server.worker_pids()
        (tmp_path / "counter_1.db").write_bytes(b"\x50\x00\x00\x00" + b"\xff" * 200)
        (tmp_path / "counter_9.db").write_bytes(os.urandom(500))
        os.mkfifo(tmp_path / "counter_10.db")
        samples = scrape(admin)
        assert value(samples, "application_files", state="broken") == 3
        os.kill(pid, signal.SIGKILL)
        until(lambda: children(server.pid) not in ([], [pid]), "a successor")
        assert server.get("/a").status == 200
        until(lambda: value(scrape(admin), "orders_total", kind="a") == 1, "it is begun anew", every=0.2)
        server.log.wait("counter_1.db was corrupt and has been recreated")


@pytest.mark.parametrize("preload", [True, "mold"])
def test_a_successor_of_max_requests_goes_on_counting(tmp_path: Path, preload: object) -> None:
    config = f"worker_class = 'gthread'\nworkers = 1\nmax_requests = 5\npreload_app = {preload!r}\n"
    server, admin = counting(tmp_path, config)
    with server:
        asked = 0

        def has_ended(count: int) -> bool:
            nonlocal asked
            for _ in range(6):  # a worker goes when its successor is up, and serves meanwhile
                assert server.get("/a").status == 200
            asked += 6
            return value(scrape(admin), "worker_exits_total", reason="max_requests") >= count

        until(lambda: has_ended(3), "workers have ended", every=0.1)
        until(lambda: value(scrape(admin), "orders_total", kind="a") == asked, "all are counted", every=0.2)


def test_forks_of_a_worker_that_became_the_mold_go_on_counting(tmp_path: Path) -> None:
    """Also those of its slot, of which others have counted meanwhile; and a mold is no live worker."""
    config = "worker_class = 'gthread'\nworkers = 2\nrefork = 4\nmax_requests = 12\npreload_app = 'mold'\n"
    server, admin = counting(tmp_path, config)
    with server:
        asked = 0

        def ended() -> float:
            nonlocal asked
            for _ in range(6):
                assert server.get("/a").status == 200
            asked += 6
            return value(scrape(admin), "worker_exits_total", reason="max_requests")

        until(lambda: ended() >= 0 and server.log.matching("is the mold now"), "a worker is the mold", every=0.5)
        most = ended() + 8
        until(lambda: ended() >= most, "workers of each slot have ended, and of the mold's more than one", every=0.1)
        until(lambda: value(scrape(admin), "orders_total", kind="a") == asked, "all are counted", every=0.2)
        assert value(scrape(admin), "live") <= 4, "of molds that have ended nothing is left"


def test_a_disk_that_hangs_holds_up_the_applications_metrics_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stall")
    with serving(lambda *_: [], admin=True, app_metrics=str(tmp_path), fault_point="stall_disk") as core:
        assert core.admin is not None
        with Wire(core.admin) as scraping, Wire(core.admin) as probing:
            begun = time.monotonic()
            scraping.send(b"GET /metrics HTTP/1.1\r\nHost: t\r\n\r\nGET /healthz HTTP/1.1\r\nHost: t\r\n\r\n")
            for _ in range(20):
                assert probing.get("/healthz").status == 200
            assert scraping.still_open()
            assert not scraping.unread, "no other question waits"
            told = scraping.reply()
            assert time.monotonic() - begun > 1.5
            assert b"tricorn_requests_total 0\n" in told.body
            assert b"application_files" not in told.body
            assert scraping.reply().status == 200, "what came behind the scrape is answered, too"
        with open(tmp_path / "stall", "wb"):
            pass
        until(lambda: value(scrape(core.admin), "application_files", state="broken") == 0, "the disk is back")


def test_metrics_of_applications_can_be_switched_off(tmp_path: Path) -> None:
    server, admin = counting(tmp_path, "workers = 1\nmetrics_app = 'off'\n")
    with server:
        assert server.get("/a").status == 200
        assert not any(name == "orders_total" for name, _ in scrape(admin))
        (pid,) = server.worker_pids()
        assert f"counter_{pid}.db" in names(tmp_path)


WRITING = """\
import os, random, sys
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary, values

seed, workers = map(int, sys.argv[1:])
name = "1"
values.ValueClass = values.MultiProcessValue(lambda: name)
draw = random.Random(seed)
amounts = [0, 1, 0.5, 2.5, 2 ** -12, 123456789.25]  # of which sums are exact, in whatever order
texts = ["plain", "", 'quo"te', "back\\\\slash", "line\\nfeed", "\\u00e4\\u20ac", "pid"]
modes = ["all", "liveall", "min", "livemin", "max", "livemax", "sum", "livesum", "mostrecent", "livemostrecent"]
metrics = [
    Counter("c", "Has a \\\\ and a \\n in its help.", ["l", "m"]),
    Counter("plain_total", "Without labels."),
    Summary("s", "Sums.", ["l"]),
    Histogram("h", "Times.", ["l"], buckets=(1e-05, 0.005, 1, 10, 1e6, 1234567.5, 2.5e12)),
    *(Gauge(f"g_{mode}", mode, ["l"], multiprocess_mode=mode) for mode in modes),
]
for name in map(str, range(1, workers + 1)):
    for _ in range(60):
        metric = draw.choice(metrics)
        labels = [draw.choice(texts) for _ in metric._labelnames]
        one = metric.labels(*labels) if labels else metric
        amount = draw.choice(amounts)
        if isinstance(metric, Counter):
            one.inc(amount)
        elif isinstance(metric, Gauge):
            mode = metric._multiprocess_mode
            if "mostrecent" in mode:
                one._value.set(amount, timestamp=draw.random() * 1e9)
            else:
                one.set(draw.choice([amount, -amount, *([] if "sum" in mode else [1e-7, 1e21])]))
        else:
            one.observe(amount)
"""


@pytest.mark.parametrize("seed", range(3))
def test_what_is_told_is_what_the_library_makes_of_the_same_files(tmp_path: Path, seed: int) -> None:
    environ = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    workers = random.Random(seed).randrange(1, 6)
    subprocess.run([sys.executable, "-c", WRITING, str(seed), str(workers)], env=environ, check=True, timeout=60)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(tmp_path))
    expected = told(text_families(generate_latest(registry).decode()))
    assert len(expected) > 10
    with serving(lambda *_: [], admin=True, app_metrics=str(tmp_path)) as core:
        assert core.admin is not None
        for parse, accept in ((text_families, []), (open_families, [OPEN])):
            with Wire(core.admin) as wire:
                reply = wire.get("/metrics", *accept)
            ours = [each for each in parse(reply.body.decode()) if not each.name.startswith("tricorn")]
            assert told(ours) == expected


def told(families: Any) -> Any:
    """All that a text says of each family."""
    return {
        family.name: (
            family.type,
            family.documentation,
            {(each.name, tuple(sorted(each.labels.items()))): each.value for each in family.samples},
        )
        for family in families
    }
