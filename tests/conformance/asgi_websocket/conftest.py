"""The servers of RFC 6455."""

from __future__ import annotations

from tests.conformance.rfc6455.conftest import open_socket, server, tcp_server

__all__ = ["open_socket", "server", "tcp_server"]
