"""What systemd hears."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tricorn.arbiter.systemd import Notifier

NAME = f"tricorn-test-{os.getpid()}"


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """systemd's socket, and how the variable names it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        name = str(tmp_path / "notify") if request.param == "path" else f"@{NAME}"
        sock.bind(name.replace("@", "\0", 1))
        yield sock, name


def test_sd_notify_protocol(manager: tuple[socket.socket, str]) -> None:
    sock, name = manager
    environ = {"NOTIFY_SOCKET": name, "KEPT": "1"}
    notifier = Notifier.from_environ(environ)
    assert environ == {"KEPT": "1"}

    notifier.ready("2 workers\nserve ✓")
    assert sock.recv(4096).decode() == "READY=1\nSTATUS=2 workers serve ✓"
    notifier.ready()
    assert sock.recv(4096) == b"READY=1"
    notifier.stopping("leaving")
    assert sock.recv(4096) == b"STOPPING=1\nSTATUS=leaving"
    notifier.main_pid(4711)
    assert sock.recv(4096) == b"MAINPID=4711"
    notifier.alive()
    assert sock.recv(4096) == b"WATCHDOG=1"
    with pytest.raises(BlockingIOError):
        sock.recv(4096)


def test_a_reload_is_dated(manager: tuple[socket.socket, str]) -> None:
    sock, name = manager
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    Notifier.from_environ({"NOTIFY_SOCKET": name}).reloading("anew")
    first, second, third = sock.recv(4096).decode().split("\n")
    assert (first, third) == ("RELOADING=1", "STATUS=anew")
    key, value = second.split("=")
    assert key == "MONOTONIC_USEC"
    assert before <= int(value) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"NOTIFY_SOCKET": ""},
        {"NOTIFY_SOCKET": "/"},
        {"NOTIFY_SOCKET": "relative"},
        {"NOTIFY_SOCKET": "vsock:2:1234"},
        {"NOTIFY_SOCKET": "/no/such/socket"},
        {"NOTIFY_SOCKET": "@tricorn-not-listening"},
        {"NOTIFY_SOCKET": "/" + "x" * 4096},
        {"NOTIFY_SOCKET": "/a\0b"},
    ],
)
def test_nobody_who_listens_is_no_error(environ: dict[str, str]) -> None:
    notifier = Notifier.from_environ(environ)
    notifier.ready("x")
    notifier.reloading()
    notifier.alive()
    assert environ == {}


def test_a_manager_that_does_not_read_is_not_waited_for_for_ever(
    manager: tuple[socket.socket, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tricorn.arbiter.systemd.SEND_TIMEOUT", 0.01)
    sock, name = manager
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        with suppress(BlockingIOError):
            while other.sendto(b"x", sock.getsockname()):
                pass  # until its queue is full
    Notifier.from_environ({"NOTIFY_SOCKET": name}).ready()


@pytest.mark.parametrize(
    ("variables", "interval"),
    [
        ({"WATCHDOG_USEC": "3000000"}, 1.5),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 1.5),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_PID": str(os.getpid())}, None),
    ],
)
def test_systemd_watchdog(variables: dict[str, str], interval: float | None) -> None:
    environ = {"NOTIFY_SOCKET": "/run/notify", **variables}
    assert Notifier.from_environ(environ).watchdog_interval == interval
    assert environ == {}
