"""A whole envoy.yaml: health by the readiness path, retries of what was not sent, WebSockets, forwarded headers."""

from __future__ import annotations

import ipaddress
import json

from tricorn.config.addresses import TcpAddress, UnixAddress
from tricorn_tools.init import front_end
from tricorn_tools.init.front_end import Choices
from tricorn_tools.init.service import File, Rendered, Service, is_loopback
from tricorn_tools.init.template import fill

EVERY, FALL = 1, 2
"""Seconds between two checks, and how many that fail take a host out."""


def render(service: Service, choices: Choices) -> Rendered:
    upstreams = front_end.upstreams(service, choices)
    text = fill(
        "envoy.yaml",
        service,
        filters={"socket": _socket},
        front_end=front_end,
        listen=front_end.public(choices),
        upstreams=upstreams,
        has_names=any(isinstance(each, TcpAddress) and not _is_address(each.host) for each in upstreams),
        every=EVERY,
        fall=FALL,
        checked_at=_checked_at(service, choices),
    )
    return Rendered((File("envoy.yaml", text),), tuple(_notes(service, choices)))


def _checked_at(service: Service, choices: Choices) -> str:
    """Returns the field of an endpoint that says where it is checked."""
    if not service.admin:
        return ""
    if choices.hosts:
        port = next(address.port for address in service.admin if not is_loopback(address))
        return f", health_check_config: {{port_value: {port}}}"
    admin = front_end.local(service.admin[0])
    return f", health_check_config: {{address: {_socket(admin)}}}"


def _socket(address: TcpAddress | UnixAddress) -> str:
    if isinstance(address, UnixAddress):
        return f"{{pipe: {{path: {json.dumps(address.path)}}}}}"
    return f"{{socket_address: {{address: {json.dumps(address.host)}, port_value: {address.port}}}}}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _notes(service: Service, choices: Choices) -> list[str]:
    found = list(front_end.notes(service, "Envoy", choices))
    notices = EVERY * FALL + 1
    if not service.admin:
        found.append('Set admin_bind = "127.0.0.1:8001": without it Envoy checks nothing.')
    elif service.config.drain_delay < notices:
        found.append(
            f"With several hosts behind Envoy set drain_delay = {notices}: one that leaves is taken out before it "
            f"stops to accept ({service.says('drain_delay')})."
        )
    return found
