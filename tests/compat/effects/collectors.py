"""Syslog and statsd: what collectors receive, byte for byte what gunicorn sends them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.compat.effects.shared import shared
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


class Collected(Site):
    """A server with a collector of its own."""

    def __init__(self, config: Callable[[Collector, str], str], more: str) -> None:
        self.collector = Collector()
        super().__init__(config(self.collector, more))

    def stop(self, *, check: bool = True) -> int:
        try:
            return super().stop(check=check)
        finally:
            self.collector.close()


@shared
def tagged() -> Site:
    return Collected(
        statsd,
        "statsd_prefix = 'shop.web..'\n"
        "dogstatsd_tags = 'env:a,role:b'\n"
        "enable_backlog_metric = True\n"
        "statsd_extended = True\n",
    )


@shared
def one_by_one() -> Site:
    return Collected(statsd, "statsd_prefix = 'a'\nstatsd_datagram = 0\n")


@shared
def sent_to_syslog() -> Site:
    return Collected(syslog, "syslog_prefix = 'shop'\nsyslog_facility = 'local7'\n")


def asked(server: Site) -> Collector:
    """The collector of a server that has answered a request."""
    assert isinstance(server, Collected)
    assert server.get("/hello").status == 200
    return server.collector


def sees_statsd_prefix(tagged: Site, one_by_one: Site) -> None:
    collector = asked(tagged)
    collector.wait(r"shop\.web\.gunicorn\.requests:1\|c\|@1\.0.*")
    collector.wait(r"shop\.web\.gunicorn\.workers:1\|g.*")
    asked(one_by_one).wait(r"agunicorn\.requests:1\|c\|@1\.0")


def sees_dogstatsd_tags(tagged: Site) -> None:
    collector = asked(tagged)
    collector.wait(rf"shop\.web\.gunicorn\.request\.duration:{MS}\|ms\|#env:a,role:b")
    collector.wait(r"shop\.web\.gunicorn\.requests:1\|c\|@1\.0\|#env:a,role:b")
    collector.wait(r"shop\.web\.gunicorn\.workers:1\|g\|#env:a,role:b")


def sees_enable_backlog_metric(tagged: Site) -> None:
    asked(tagged).wait(r"shop\.web\.gunicorn\.backlog:\d+\|h.*")


def sees_statsd_datagram(one_by_one: Site) -> None:
    collector = asked(one_by_one)
    collector.wait(r"agunicorn\.request\.status\.200:1\|c\|@1\.0")
    assert not [datagram for datagram in collector.datagrams if b"\n" in datagram]


def sees_statsd_extended(tagged: Site) -> None:
    collector = asked(tagged)
    collector.wait(rf"shop\.web\.gunicorn\.queue\.duration:{MS}\|ms.*")
    collector.wait(r"shop\.web\.gunicorn\.requests\.running:0\|g.*")
    collector.wait(r"shop\.web\.gunicorn\.requests\.waiting:0\|g.*")
    collector.wait(r"shop\.web\.gunicorn\.memory\.pss:\d{7,}\|g.*")


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


def sees_syslog_prefix(sent_to_syslog: Site) -> None:
    collector = asked(sent_to_syslog)
    collector.wait(r"<\d+>gunicorn\.shop\.access: .*")
    collector.wait(r"<\d+>gunicorn\.shop\.error: .*")


def sees_syslog_facility(sent_to_syslog: Site) -> None:
    collector = asked(sent_to_syslog)
    collector.wait(r"<190>gunicorn\.shop\.access: .*")
    collector.wait(r"<190>gunicorn\.shop\.error: .*")


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
