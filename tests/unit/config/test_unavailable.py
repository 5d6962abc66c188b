"""What this version does not have, and who is content with that."""

from __future__ import annotations

import pytest
from tricorn.config.unavailable import UNAVAILABLE

BY_NAME = {record.name: record for record in UNAVAILABLE}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keyfile", None),
        ("keyfile", ""),
        ("syslog", False),
        ("proxy_protocol", "off"),
        ("proxy_protocol", False),
        ("protocol", "http"),
        ("dirty_apps", []),
        ("dirty_workers", 0),
        ("dirty_timeout", 300),
        ("http_protocols", "h1"),
        ("http_protocols", ["h1"]),
        ("proxy_allow_ips", "127.0.0.1,::1"),
        ("suppress_ragged_eofs", True),
        ("control_socket_mode", 0o600),
    ],
)
def test_gunicorns_default_asks_for_nothing(name: str, value: object) -> None:
    assert BY_NAME[name].asks_for_nothing(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keyfile", "key.pem"),
        ("syslog", True),
        ("proxy_protocol", "v2"),
        ("http_protocols", "h2,h1"),
        ("dirty_workers", 1),
        ("ssl_context", lambda config, factory: factory()),
    ],
)
def test_anything_else_asks_for_something(name: str, value: object) -> None:
    assert not BY_NAME[name].asks_for_nothing(value)
