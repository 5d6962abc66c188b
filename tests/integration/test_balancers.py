"""Balancers before several servers: they obey what a server says of its load, and repeat elsewhere what it refused."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import REFERENCE, Load, Site, until
from tests.harness.balancers import Balancer, program
from tests.harness.scrape import scrape, value
from tests.harness.server import free_port
from tests.harness.wire import Address, Reply, Wire

pytestmark = pytest.mark.skipif(REFERENCE, reason="gunicorn has no load report")

APP = """\
import os, time
from pathlib import Path

NAME = Path(__file__).with_name("name").read_text()
SECONDS = Path(__file__).with_name("seconds")

def application(environ, start_response):
    environ["wsgi.input"].read()
    time.sleep(float(SECONDS.read_text()))
    start_response("200 OK", [])
    return [NAME.encode()]
"""
"""Says which server it is, and takes as long as a file says."""


class Host:
    """A server with a name, whose speed can be changed."""

    def __init__(self, name: str, config: str, seconds: float) -> None:
        port = free_port()
        self.admin: Address = ("127.0.0.1", port)
        self.site = Site(
            f"admin_bind = '127.0.0.1:{port}'\n{config}",
            app="host:application",
            files={"host.py": APP, "name": name, "seconds": str(seconds)},
        )
        self.name = name
        self.line = f"    server {name} {self.site.bind} check inter 1s fall 2 rise 1 port {port}"
        self.agent = f'{self.line} weight 100 agent-check agent-port {port} agent-inter 500ms agent-send "agent\\n"'

    def takes(self, seconds: float) -> None:
        whole = self.site.conf.parent / "seconds.new"
        whole.write_text(str(seconds))
        whole.rename(self.site.conf.parent / "seconds")


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    program("haproxy")
    config = "worker_class = 'gthread'\nthreads = 4\n"
    first, second = Host("first", f"{config}drain_delay = 60\n", 0.02), Host("second", config, 0.02)
    with first.site, second.site:
        yield first, second
        first.site.signal(signal.SIGQUIT)
        first.site.wait_exit()


CHECK = """\
    option httpchk
    http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host tricorn
    http-check expect status 200
"""


class Shares:
    """Counts which server has answered."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, reply: Reply) -> bool:
        with self._lock:
            self.counted[reply.body.decode()] += 1
        return reply.status == 200

    def next(self, load: Load, answers: int) -> float:
        """The part of the first one, of so many answers from now on."""
        before = Counter(self.counted)
        load.settle(answers)
        more = Counter(self.counted)
        more.subtract(before)
        return more["first"] / sum(more.values())


def test_haproxy_sends_a_slow_server_less_and_one_that_leaves_nothing(hosts: tuple[Host, Host], tmp_path: Path) -> None:
    """`balance roundrobin` follows weights alone: a server at half its speed gets half as much."""
    first, second = hosts
    text = f"    balance roundrobin\n{CHECK}{first.agent}\n{second.agent}"
    shares = Shares()
    with (
        Balancer("haproxy", text, tmp_path) as haproxy,
        Load(("127.0.0.1", haproxy.port), "/", clients=6, pause=0, check=shares.note) as load,
    ):

        def weight(host: Host) -> int:
            return int(haproxy.told()[host.name]["weight"])

        until(lambda: haproxy.told()["first"]["slim"] == "4", "HAProxy knows how many requests can run at once")
        until(lambda: best(first) and best(second), "both know their best speed", every=0.2)
        assert 0.4 < shares.next(load, 200) < 0.6
        first.takes(0.045)
        until(lambda: 0 < weight(first) <= 0.6 * weight(second), "the slow server has half of the weight", every=0.1)
        assert shares.next(load, 200) < 0.44
        first.takes(0.02)
        until(lambda: weight(first) >= 0.8 * weight(second), "its weight is back", every=0.1)
        first.site.signal(signal.SIGTERM)
        until(lambda: weight(first) == 0, "the server that leaves has no weight", every=0.1)
        load.settle(20)  # what was sent to it before is answered
        assert shares.next(load, 100) == 0
        with Wire(first.site.address) as direct:
            assert direct.get("/").body == b"first", "it still serves"
        assert load.stop().failures == []


def best(host: Host) -> bool:
    """Whether the server has been busy enough for a weight to be known."""
    with Wire(host.admin) as wire:
        told: dict[str, Any] = json.loads(wire.get("/load").body)
    return bool(told["utilisation"] > 0.35 and told["window"] >= 2.9 and told["rps"] > 12)


def test_haproxys_operator_has_the_last_word(hosts: tuple[Host, Host], tmp_path: Path) -> None:
    first, second = hosts
    with Balancer("haproxy", f"{CHECK}{first.agent}\n{second.agent}", tmp_path) as haproxy:
        until(lambda: haproxy.told()["first"]["slim"] == "4", "the agent has been asked")
        for words in ("state maint", "weight 50%"):
            assert haproxy.says(f"set server hosts/first {words}") == ""
        until(lambda: haproxy.told()["first"]["weight"] == "100", "the agent has been asked again")
        assert haproxy.told()["first"]["status"] == "MAINT"


@pytest.mark.parametrize("kind", ["haproxy", "nginx"])
def test_a_request_that_was_refused_is_repeated_elsewhere(kind: str, tmp_path: Path) -> None:
    """A POST too: it was not begun."""
    program(kind)
    config = "worker_class = 'gthread'\nthreads = 1\nqueue_limit = 1\n"
    slow, quick = Host("slow", config, 0.4), Host("quick", config.replace("limit = 1\n", "limit = 100\n"), 0.002)
    with slow.site, quick.site:
        if kind == "haproxy":
            settings = ("balance roundrobin", "retry-on conn-failure 503", "option redispatch 1")
            text = "".join(f"    {line}\n" for line in settings) + f"{slow.line}\n{quick.line}"
        else:
            text = (
                f"    upstream hosts {{ server {slow.site.bind}; server {quick.site.bind}; keepalive 32; }}\n"
                "    server { listen 127.0.0.1:{port}; location / { proxy_pass http://hosts;\n"
                "        proxy_http_version 1.1; proxy_set_header Connection '';\n"
                "        proxy_next_upstream error timeout http_503 non_idempotent; } }"
            )
        with Balancer(kind, text, tmp_path) as balancer:
            replies: list[Reply] = []

            def ask() -> None:
                with balancer.connect() as wire:
                    for _ in range(12):
                        replies.append(wire.ask("POST", "/", body=b"x" * 100))

            threads = [threading.Thread(target=ask) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert Counter(reply.status for reply in replies) == {200: 96}
        assert {reply.body for reply in replies} == {b"slow", b"quick"}
        refused = value(scrape(slow.admin), "shed_total", reason="queue_full")
        assert refused > 0, "nothing had to be repeated"
