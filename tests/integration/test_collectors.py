"""Syslog and statsd: every worker class, and collectors that are away, full, or come back."""

from __future__ import annotations

import os
import re
import signal
import socket
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.harness import ALL_CLASSES, Server, Site
from tests.harness.collector import Collector
from tests.harness.deadline import until

MS = r"\d+\.\d{1,3}"


@pytest.fixture(scope="module")
def listening() -> Iterator[tuple[Collector, Collector]]:
    with Collector() as statsd, Collector() as syslog:
        yield statsd, syslog


@ALL_CLASSES
@pytest.mark.beyond_reference("without an access log its asgi sends no metrics, and its tornado none at all")
def test_every_class_tells_both_without_an_access_log(
    worker_class: str, listening: tuple[Collector, Collector]
) -> None:
    statsd, syslog = listening
    tag = f"class:{worker_class}"
    options = f"--statsd-host 127.0.0.1:{statsd.port} --dogstatsd-tags {tag} --statsd-prefix p1 --log-syslog"
    options += f" --log-syslog-to udp://127.0.0.1:{syslog.port} --log-syslog-prefix {worker_class}"
    with Server(worker_class=worker_class, extra=options.split()) as server:
        assert server.get(f"/hello?{worker_class}").status == 200
        with server.connect() as wire:
            assert wire.send(b"nonsense\r\n\r\n").reply().status == 400
        head = rf"<14>gunicorn\.{worker_class}\.access: \[{server.worker_pids()[0]}\] 127\.0\.0\.1 - - \[.{{26}}\] "
        syslog.wait(head + rf'"GET /hello\?{worker_class} HTTP/1\.1" 200 6 "-" "-"')
        syslog.wait(head + r".* 400 .*")
        end = re.escape(f"|#{tag}")
        statsd.wait(rf"p1\.gunicorn\.request\.status\.400:1\|c\|@1\.0{end}")
        statsd.wait(rf"p1\.gunicorn\.requests:1\|c\|@1\.0{end}", count=2)
        statsd.wait(rf"p1\.gunicorn\.request\.status\.200:1\|c\|@1\.0{end}")
        statsd.wait(rf"p1\.gunicorn\.request\.duration:{MS}\|ms{end}", count=2)
        statsd.wait(rf"p1\.gunicorn\.workers:1\|g{end}")


def test_metrics_and_lines_go_on_after_a_fork_a_reload_and_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Collector() as statsd, Collector(path) as syslog:
        config = f"statsd_host = '127.0.0.1:{statsd.port}'\nsyslog = True\nsyslog_addr = 'unix://{path}'\n"
        with Site(config) as server:
            old = server.worker_pids()[0]

            def asks(mark: str) -> None:
                before = sum("requests:1" in line for line in statsd.lines)
                server.get(f"/hello?{mark}")
                syslog.wait(rf".*\.access: .*GET /hello\?{mark} .*")
                until(lambda: sum("requests:1" in line for line in statsd.lines) > before, f"metrics of {mark}")

            asks("first")
            server.signal(signal.SIGUSR1)
            asks("reopened")
            server.signal(signal.SIGHUP)
            until(lambda: server.worker_pids() not in ([], [old]) and old not in server.worker_pids(), "another worker")
            asks("reloaded")
            syslog.wait(r".*\.error: \[\d+\] Handling signal: hup")


@pytest.mark.beyond_reference("it waits for the collector")
def test_a_collector_that_reads_nothing_delays_no_request_and_the_losses_are_counted(tmp_path: Path) -> None:
    """A unix socket with full queues: send(2) would wait."""
    full = tmp_path / "full"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(full))
        config = f"statsd_host = 'unix://{full}'\nstatsd_datagram = 0\n"
        config += f"syslog = True\nsyslog_addr = 'unix://{full}#dgram'\n"
        with Site(config, extra=("--admin-bind", f"unix:{tmp_path}/admin")) as server:
            with server.connect() as wire:
                waits = []
                for number in range(600):
                    began = time.monotonic()
                    assert wire.send(b"GET /hello HTTP/1.1\r\nHost: t\r\n\r\n").reply().status == 200
                    waits.append(time.monotonic() - began)
                    if number == 300:  # a record of the error log, which is sent by Python
                        server.signal(signal.SIGUSR1)
            assert statistics.median(waits) < 1, "each that waits gives up after some time"
            assert until(lambda: _lost(tmp_path / "admin", "statsd"), "losses are counted") > 0
            deaf.setblocking(True)
            deaf.settimeout(5)
            received = [deaf.recv(1 << 16) for _ in range(600)]
            assert any(b"access" in each for each in received), "lines that were kept came later"


def _lost(admin: Path, log: str) -> int:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(admin))
        asking.sendall(b"GET /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
        told = b"".join(iter(lambda: asking.recv(1 << 16), b"")).decode()
    found = re.search(rf'^tricorn_lines_lost_total{{log="{log}"}} (\d+)$', told, re.MULTILINE)
    assert found, told
    return int(found[1])


@pytest.mark.beyond_reference("it tries neither a socket that was not there nor one that is gone")
def test_a_collector_may_come_late_and_be_started_again(tmp_path: Path) -> None:
    statsd_path, syslog_path = tmp_path / "statsd", tmp_path / "syslog"
    config = f"statsd_host = 'unix://{statsd_path}'\nsyslog = True\nsyslog_addr = 'unix://{syslog_path}'\n"
    with Site(config) as server:
        assert server.get("/hello?unheard").status == 200
        server.log.wait(r"Cannot reach syslog at .*syslog(?: .*)?: .*up to 4 MiB")
        for round_ in ("late", "again"):
            with Collector(statsd_path) as statsd, Collector(syslog_path, stream=True) as syslog:
                heard = partial(_both_hear, server, statsd, syslog, round_)
                until(heard, f"both hear of {round_}", every=0.05)
                if round_ == "late":
                    syslog.wait(r".*\.access: .*GET /hello\?unheard .*")
            statsd_path.unlink()
            syslog_path.unlink()


def _both_hear(server: Server, statsd: Collector, syslog: Collector, mark: str) -> bool:
    server.get(f"/hello?{mark}")
    lines = [message for message in syslog.messages if mark in message]
    return bool(lines) and any("requests:1" in line for line in statsd.lines)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
def test_what_was_opened_as_root_serves_other_users(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    paths = closed / "statsd", closed / "syslog"
    with Collector(paths[0]) as statsd, Collector(paths[1]) as syslog:
        config = f"statsd_host = 'unix://{paths[0]}'\nsyslog = True\nsyslog_addr = 'unix://{paths[1]}'\n"
        with Site(f"{config}user = 65534\npreload_app = True\n") as server:
            server.directory.chmod(0o755)
            server.get("/hello?dropped")
            statsd.wait(r"gunicorn\.requests:1\|c\|@1\.0")
            syslog.wait(r".*\.access: .*GET /hello\?dropped .*")


LOGGERS = """
from gunicorn.instrument.statsd import Statsd


class Mine(Statsd):
    def access(self, resp, req, environ, request_time):
        super().access(resp, req, environ, request_time)
        self.increment("mine", 2, 0.5)
        self.info("", extra={"metric": "depth", "value": 7, "mtype": "gauge"})
        self.warning("careful")
"""


def test_a_logger_class_of_the_users_sends_its_own_and_each_metric_once(tmp_path: Path) -> None:
    with Collector() as statsd:
        config = f"statsd_host = '127.0.0.1:{statsd.port}'\nlogger_class = 'loggers.Mine'\n"
        with Site(config, files={"loggers.py": LOGGERS}) as server:
            server.get("/hello")
            statsd.wait(r"mine:2\|c\|@0\.5")
            statsd.wait(r"depth:7\|g")
            statsd.wait(r"gunicorn\.log\.warning:1\|c\|@1\.0")
        asked = sum(line == "mine:2|c|@0.5" for line in statsd.lines)
        assert sum(line == "gunicorn.requests:1|c|@1.0" for line in statsd.lines) == asked


NAMES = """\
from tricorn.unpatched import socket
asked = socket.getaddrinfo

def getaddrinfo(host, port, *rest):
    if host == 'collector':
        host = open(PATH).read()
    return asked(host, port, *rest)

socket.getaddrinfo = getaddrinfo
"""


@pytest.mark.beyond_reference("it keeps the address of its start")
def test_a_collector_whose_name_means_another_address_is_followed_without_a_reload(tmp_path: Path) -> None:
    where = tmp_path / "address"
    where.write_text("127.0.0.1")
    with Collector() as statsd, Collector(stream=True) as syslog:
        config = f"PATH = {str(where)!r}\n{NAMES}statsd_host = 'collector:{statsd.port}'\nsyslog = True\n"
        config += f"syslog_addr = 'tcp://collector:{syslog.port}'\n"
        with Site(config, fresh=True) as server:
            pids = server.worker_pids()
            assert server.get("/hello?here").status == 200
            statsd.wait(r"gunicorn\.requests:1\|c\|@1\.0")
            syslog.wait(r".*GET /hello\?here .*")
            statsd.close()
            syslog.close()
            where.write_text("127.0.0.2")
            with (
                Collector(host="127.0.0.2", port=statsd.port) as statsd_there,
                Collector(host="127.0.0.2", port=syslog.port, stream=True) as syslog_there,
            ):

                def is_heard() -> bool:
                    server.get("/hello?there")
                    lines = [line for line in syslog_there.messages if "/hello?there" in line]
                    return bool(lines) and any("requests:1" in line for line in statsd_there.lines)

                until(is_heard, "messages come to the new address", within=120, every=0.2)
                assert all(line.startswith("<") for line in syslog_there.messages), "none is torn"
            assert server.worker_pids() == pids
