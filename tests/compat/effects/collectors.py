"""Syslog and statsd: what collectors receive, byte for byte what gunicorn sends them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.harness import Site
from tests.harness.collector import Collector

MS = r"\d+\.\d{1,3}"
"""Milliseconds as Python prints them."""


def statsd(collector: Collector, more: str = "") -> str:
    return f"statsd_host = '127.0.0.1:{collector.port}'\n{more}"


def syslog(collector: Collector, more: str = "") -> str:
    return f"syslog = True\nsyslog_addr = 'udp://127.0.0.1:{collector.port}'\n{more}"


def sees_statsd_host(directory: Path) -> None:
    """A server that is started, asked and stopped."""
    with Collector() as collector:
        with Site(statsd(collector, "workers = 2\n"), workers=2) as server:
            collector.wait(r"gunicorn\.workers:2\|g")
            assert server.get("/hello").status == 200
            collector.wait(r"gunicorn\.request\.status\.200:1\|c\|@1\.0")
            assert server.get("/hello?b").status == 200
            collector.wait(r"gunicorn\.requests:1\|c\|@1\.0", count=2)
        lines = [line for line in collector.lines if ".request" in line]
    assert re.fullmatch(rf"gunicorn\.request\.duration:{MS}\|ms", lines[0]), lines
    assert lines[1:3] == ["gunicorn.requests:1|c|@1.0", "gunicorn.request.status.200:1|c|@1.0"]
    assert len(lines) % 3 == 0


def sees_statsd_prefix(directory: Path) -> None:
    with Collector() as collector, Site(statsd(collector, "statsd_prefix = 'shop.web..'\n")) as server:
        server.get("/hello")
        collector.wait(r"shop\.web\.gunicorn\.requests:1\|c\|@1\.0")
        collector.wait(r"shop\.web\.gunicorn\.workers:1\|g")
    with Collector() as collector, Site(statsd(collector, "statsd_prefix = 'a'\n")) as server:
        server.get("/hello")
        collector.wait(r"agunicorn\.requests:1\|c\|@1\.0")


def sees_dogstatsd_tags(directory: Path) -> None:
    with Collector() as collector, Site(statsd(collector, "dogstatsd_tags = 'env:a,role:b'\n")) as server:
        server.get("/hello")
        collector.wait(rf"gunicorn\.request\.duration:{MS}\|ms\|#env:a,role:b")
        collector.wait(r"gunicorn\.requests:1\|c\|@1\.0\|#env:a,role:b")
        collector.wait(r"gunicorn\.workers:1\|g\|#env:a,role:b")


def sees_enable_backlog_metric(directory: Path) -> None:
    with Collector() as collector, Site(statsd(collector, "enable_backlog_metric = True\n")):
        collector.wait(r"gunicorn\.backlog:\d+\|h")


def sees_statsd_datagram(directory: Path) -> None:
    with Collector() as collector, Site(statsd(collector, "statsd_datagram = 0\n")) as server:
        server.get("/hello")
        collector.wait(r"gunicorn\.request\.status\.200:1\|c\|@1\.0")
        assert not [datagram for datagram in collector.datagrams if b"\n" in datagram]


def sees_statsd_extended(directory: Path) -> None:
    with Collector() as collector, Site(statsd(collector, "statsd_extended = True\n")) as server:
        server.get("/hello")
        collector.wait(rf"gunicorn\.queue\.duration:{MS}\|ms")
        collector.wait(r"gunicorn\.requests\.running:0\|g")
        collector.wait(r"gunicorn\.requests\.waiting:0\|g")


def sees_syslog(directory: Path) -> None:
    with Collector() as collector, Site(syslog(collector)) as server:
        server.get("/hello")
        line = collector.wait(r"<14>gunicorn\.gallery\.application\.access: .*/hello.*")[0]
        pid = server.worker_pids()[0]
        head = rf"<14>gunicorn\.gallery\.application\.access: \[{pid}\] 127\.0\.0\.1 - - \[.{{26}}\] "
        assert re.fullmatch(head + r'"GET /hello HTTP/1\.1" 200 6 "-" "-"', line), line
        collector.wait(rf"<14>gunicorn\.gallery\.application\.error: \[{server.pid}\] Listening at: .*")
        collector.wait(rf"<14>gunicorn\.gallery\.application\.error: \[{pid}\] Booting worker with pid: {pid}")
    assert all(datagram.endswith(b"\0") and datagram.count(b"\0") == 1 for datagram in collector.datagrams)


def sees_syslog_addr(directory: Path) -> None:
    """A socket of the file system, of either kind: gunicorn finds out which."""
    for stream in (False, True):
        path = directory / f"log-{stream}"
        config = f"syslog = True\nsyslog_addr = 'unix://{path}'\n"
        with Collector(path, stream=stream) as collector, Site(config) as server:
            server.get("/hello")
            collector.wait(r'<14>gunicorn\.gallery\.application\.access: .*"GET /hello HTTP/1\.1" 200 6.*')


def sees_syslog_prefix(directory: Path) -> None:
    with Collector() as collector, Site(syslog(collector, "syslog_prefix = 'shop'\n")) as server:
        server.get("/hello")
        collector.wait(r"<14>gunicorn\.shop\.access: .*")
        collector.wait(r"<14>gunicorn\.shop\.error: .*")


def sees_syslog_facility(directory: Path) -> None:
    with Collector() as collector, Site(syslog(collector, "syslog_facility = 'local7'\n")) as server:
        server.get("/hello")
        collector.wait(r"<190>gunicorn\.gallery\.application\.access: .*")
        collector.wait(r"<190>gunicorn\.gallery\.application\.error: .*")


def sees_syslog_format(directory: Path) -> None:
    head = r"<14>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \S+ gunicorn\.shop \d+"
    more = "syslog_prefix = 'shop'\nsyslog_format = 'rfc5424'\n"
    with Collector() as collector, Site(syslog(collector, more)) as server:
        server.get("/hello")
        collector.wait(rf'{head} access - 127\.0\.0\.1 .*"GET /hello HTTP/1\.1" 200 6.*')
        collector.wait(rf"{head} error - Booting worker .*")


def sees_disable_redirect_access_to_syslog(directory: Path) -> None:
    with Collector() as collector:
        with Site(syslog(collector, "disable_redirect_access_to_syslog = True\naccesslog = '-'\n")) as server:
            server.get("/hello?marked")
            server.out.wait("marked")
        collector.wait(r"<14>gunicorn\.gallery\.application\.error: .*Shutting down: Master")
        assert not [message for message in collector.messages if ".access: " in message]
