"""Hosts on a network of their own: a namespace each, and a bridge in one more.

    with Network("balancer", "client", "app-1", "app-2") as net:
        net["app-1"].start([...])
        with net["client"].entered(): ...

Addresses are of 198.18.0.0/15, which RFC 2544 sets aside for tests. No link, address or rule is ever made outside of
the namespaces; these, and all processes in them, are gone at the end.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import IO, TYPE_CHECKING, Any

from tests.harness import until

if TYPE_CHECKING:
    from typing_extensions import Self

CLONE_NEWNET = 0x40000000
SUBNET = "198.18.0"
_numbers = itertools.count(1)


@cache
def lacking() -> str | None:
    """Why there can be no hosts here, in the words of a skip; None if there can."""
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        return "only root can make network namespaces"
    name = f"tricorn-{os.getpid()}-probe"
    try:
        done = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    except FileNotFoundError:
        return "ip is not installed"
    if done.returncode:
        return "network namespaces cannot be made here"
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return None


def ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
    return done.stdout


class Host:
    """A namespace with one link, on which it has one address."""

    def __init__(self, name: str, namespace: str, address: str, bridge: str, port: str) -> None:
        self.name = name
        self.address = address
        self._namespace = namespace
        self._bridge = bridge
        self._port = port

    def within(self, command: Sequence[str]) -> list[str]:
        """The command that runs in this namespace; its process id is that of `ip`, which becomes the command."""
        return ["ip", "netns", "exec", self._namespace, *command]

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.within(command), stdin=subprocess.DEVNULL, **options)

    def run(self, command: Sequence[str], text: str | None = None) -> str:
        done = subprocess.run(self.within(command), input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """This thread, and no other one, opens its sockets here."""
        with open("/proc/thread-self/ns/net") as before, open(f"/run/netns/{self._namespace}") as here:
            _set(here)
            try:
                yield
            finally:
                _set(before)

    def plug(self, *, connected: bool) -> None:
        """Pulls the cable, or puts it back: the port of the bridge, so that the host itself sees no carrier."""
        ip("-n", self._bridge, "link", "set", self._port, "up" if connected else "down")

    def pids(self) -> list[int]:
        return [int(pid) for pid in ip("netns", "pids", self._namespace).split()]

    def kill(self) -> None:
        """All its processes at once, without a word."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Network:
    def __init__(self, *names: str) -> None:
        self._prefix = f"tricorn-{os.getpid()}-{next(_numbers)}"
        self._bridge = f"{self._prefix}-bridge"
        self._names = names
        self.made: list[str] = []
        self.hosts: dict[str, Host] = {}

    def __enter__(self) -> Self:
        try:
            self._make(self._bridge)
            ip("-n", self._bridge, "link", "add", "bridge", "type", "bridge", "forward_delay", "0")
            ip("-n", self._bridge, "link", "set", "bridge", "up")
            for number, name in enumerate(self._names, 1):
                self.hosts[name] = self._connect(name, number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for namespace in reversed(self.made):
            host = Host("", namespace, "", "", "")
            with contextlib.suppress(AssertionError):
                until(lambda host=host: host.kill() or not host.pids(), "all processes are gone", within=10)
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)
        self.made.clear()

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def _make(self, namespace: str) -> None:
        ip("netns", "add", namespace)
        self.made.append(namespace)
        ip("-n", namespace, "link", "set", "lo", "up")

    def _connect(self, name: str, number: int) -> Host:
        namespace, port, address = f"{self._prefix}-{name}", f"port{number}", f"{SUBNET}.{number}"
        self._make(namespace)
        ip("-n", self._bridge, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        ip("-n", self._bridge, "link", "set", port, "master", "bridge", "up")
        ip("-n", namespace, "address", "add", f"{address}/24", "dev", "eth0")
        ip("-n", namespace, "link", "set", "eth0", "up")
        return Host(name, namespace, address, self._bridge, port)


def _set(namespace: IO[str]) -> None:
    """setns(2), which Python has since 3.12: for the calling thread."""
    if _libc().setns(namespace.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
