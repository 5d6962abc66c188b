"""Which process listens on a port."""

from __future__ import annotations

import os
import socket
import sys

import pytest
from tricorn.arbiter.listeners import port_holder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc/net/tcp")


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_parent_is_named_and_no_child_that_has_the_socket_too(family: int, host: str) -> None:
    with socket.create_server((host, 0), family=family) as server:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(writer)
            os.read(reader, 1)  # ends with the parent's copy
            os._exit(0)
        try:
            holder = port_holder.find(server.getsockname()[1])
        finally:
            os.close(reader)
            os.close(writer)
            os.waitpid(pid, 0)
    with open("/proc/self/comm") as stream:
        assert str(holder) == f"pid {os.getpid()} ({stream.read().strip()})"
    assert holder is not None
    assert "pytest" in holder.title or "python" in holder.title


def test_a_port_without_a_listener_has_no_holder() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert port_holder.find(bound.getsockname()[1]) is None
