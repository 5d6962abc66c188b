"""Balancers on a host: the recipes of deploy/ in front of other hosts, or rules of nftables as kube-proxy has them."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.net import Host
from tests.cluster.servers import ADMIN, PORT
from tests.harness import until
from tests.harness.balancers import haproxy_tells, nginx_around
from tests.harness.balancers import program as harness_program
from tests.harness.server import Lines
from tests.harness.wire import Wire

if TYPE_CHECKING:
    from typing_extensions import Self

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
ENVIRONMENT = ROOT / ".venvs/cluster"
"""What `make test-cluster` installs: Envoy comes as a wheel."""
PUBLIC = 80
RECIPE = re.compile(r"10\.0\.0\.1(\d)\b")
"""The addresses of the hosts in the recipes: 10.0.0.11 is the first."""
FASTER = (
    ("inter 1s", "inter 300ms"),
    ("agent-inter 2s", "agent-inter 300ms"),
    ("interval: 1s", "interval: 0.3s"),
    ("traffic_interval: 1s", "traffic_interval: 0.3s"),
)
"""Checks are more frequent here than in a recipe, so that a `drain_delay` of 2 s is longer than two of them."""


def program(name: str) -> str:
    return harness_program(name, str(ENVIRONMENT / "bin"))


def recipe(name: str, hosts: Sequence[Host]) -> str:
    """A file of deploy/, with the addresses of these hosts, and checks that do not wait for a second."""
    text = RECIPE.sub(lambda match: _address(hosts, int(match[1])), (DEPLOY / name).read_text())
    text = "\n".join(line for line in text.splitlines() if "no such host" not in line) + "\n"
    for slow, fast in FASTER:
        text = text.replace(slow, fast)
    return text


def _address(hosts: Sequence[Host], number: int) -> str:
    return hosts[number - 1].address if number <= len(hosts) else "no such host"


class Balancer:
    """A context manager: inside it the balancer answers for the hosts."""

    def __init__(
        self, host: Host, hosts: Sequence[Host], directory: Path, change: Callable[[str], str] = lambda text: text
    ) -> None:
        """`change` makes of the recipe what a test needs besides."""
        self.host = host
        self.hosts = hosts
        self.directory = directory
        self._change = change

    @property
    def address(self) -> tuple[str, int]:
        return self.host.address, PUBLIC

    def __enter__(self) -> Self:
        self.process = self.host.start(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        self.log = Lines(self.process.stderr)
        try:
            until(self._answers, f"{type(self).__name__} answers")
        except AssertionError:
            self.__exit__()
            raise AssertionError(self.log.text) from None
        return self

    def __exit__(self, *_: object) -> None:
        # TERM, and not KILL: nginx's worker would go on to listen without its master.
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.host.kill()
            self.process.wait(10)
        self.log.join()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def command(self) -> list[str]:
        raise NotImplementedError

    def _write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path

    def _answers(self) -> bool:
        with self.host.entered():
            try:
                with Wire(self.address, timeout=2) as wire:
                    return wire.get("/").status == 200
            except (OSError, AssertionError):
                return False

    def leaves(self, host: Host) -> None:
        """TERM is about to be sent there; these balancers find out by themselves."""

    def is_back(self, host: Host) -> None:
        """It serves again."""


class HAProxy(Balancer):
    def command(self) -> list[str]:
        text = self._change(recipe("haproxy/haproxy.cfg", self.hosts))
        text = text.replace("global\n", f"global\n    stats socket {self._stats} mode 600 level admin\n", 1)
        return [program("haproxy"), "-db", "-f", str(self._write("haproxy.cfg", text))]

    @property
    def _stats(self) -> Path:
        return self.directory / "stats"

    def told(self) -> dict[str, dict[str, str]]:
        """What it says of each host: the columns of `show stat`."""
        told = haproxy_tells(self._stats, "shop")
        return {host.name: told[f"shop-{number}"] for number, host in enumerate(self.hosts, 1)}

    def weight(self, host: Host) -> int:
        return int(self.told()[host.name]["weight"])

    def until_told(self, concurrency: int) -> None:
        """Each host's agent has said how many requests can be with it at once."""
        until(
            lambda: {each["slim"] for each in self.told().values()} == {str(concurrency)},
            f"HAProxy has heard of {concurrency} requests at once",
        )


CHECK = f"check inter 300ms fall 2 rise 1 port {ADMIN}"
AGENT = f'weight 100 agent-check agent-port {ADMIN} agent-inter 300ms agent-send "agent\\n"'
SERVER = re.compile(r"^( +server \S+ \S+).*$", re.MULTILINE)


def servers(text: str, options: str) -> str:
    """haproxy.cfg, with other words on each `server` line."""
    return SERVER.sub(lambda match: f"{match[1]} {options}", text)


class Nginx(Balancer):
    def command(self) -> list[str]:
        self._write("site.conf", self._change(recipe("nginx/shop.conf", self.hosts)))
        main = self._write(
            "nginx.conf",
            nginx_around(f"    include {self.directory}/site.conf;", self.directory, "worker_processes 1;"),
        )
        return [program("nginx"), "-p", str(self.directory), "-c", str(main), "-e", "stderr"]

    def is_back(self, host: Host) -> None:
        """nginx leaves a host out for `fail_timeout` (2 s); when all are left out within it, it answers 502."""
        time.sleep(2.2)


class Envoy(Balancer):
    def command(self) -> list[str]:
        path = self._write("envoy.yaml", self._change(recipe("envoy/envoy.yaml", self.hosts)))
        # One worker thread; without hot restarts there is no name that two Envoys would share.
        options = ["--concurrency", "1", "--disable-hot-restart", "-l", "warning"]
        return [program("envoy"), "-c", str(path), *options]


class L4(Balancer):
    """Connections are sent on by the kernel, to a host drawn by lot, as kube-proxy's rules do it.

    Its `late` seconds are those in which a cluster's control plane takes a pod that was sent TERM out of the rules.
    """

    late: float = 0.5

    def __enter__(self) -> Self:
        self._table = program("nft")
        self.host.run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
        self.host.run(
            [self._table, "-f", "-"],
            "table ip balancer {\n"
            "  chain in { type nat hook prerouting priority -100; }\n"
            "  chain out { type nat hook postrouting priority 100; masquerade; }\n"
            "}\n",
        )
        self._ready = list(self.hosts)
        self._send_to(self._ready)
        return self

    def __exit__(self, *_: object) -> None:
        self.host.run([self._table, "delete", "table", "ip", "balancer"])

    def leaves(self, host: Host) -> None:
        self._ready.remove(host)
        self._send_to(self._ready)

    def is_back(self, host: Host) -> None:
        self._ready.append(host)
        self._send_to(self._ready)

    def _send_to(self, hosts: Sequence[Host]) -> None:
        """One transaction: between two of them SYNs would pass without an address, and time out."""
        to = ", ".join(f"{number} : {host.address}" for number, host in enumerate(hosts))
        rule = f"tcp dport {PUBLIC} dnat to numgen random mod {len(hosts)} map {{ {to} }}:{PORT}"
        self.host.run([self._table, "-f", "-"], f"flush chain ip balancer in\nadd rule ip balancer in {rule}\n")


BALANCERS: dict[str, type[Balancer]] = {"haproxy": HAProxy, "nginx": Nginx, "envoy": Envoy, "l4": L4}
