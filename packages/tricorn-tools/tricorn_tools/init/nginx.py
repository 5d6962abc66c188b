"""A site for nginx: one server behind it, kept connections, WebSockets, forwarded headers."""

from __future__ import annotations

import math
import re
from typing import Any

from tricorn.config.addresses import TcpAddress, UnixAddress
from tricorn.record import replace
from tricorn_tools.init import front_end
from tricorn_tools.init.front_end import Choices
from tricorn_tools.init.service import File, Rendered, Service
from tricorn_tools.init.template import fill

DELIMITERS = len(": \r\n")
"""Bytes around a header field that nginx counts and the server does not."""

PLAIN = re.compile(r"[^\s\x00-\x1f\x7f;{}\"'\\#]+")
"""A word that needs no quotes."""

LEAST_BUFFER = 8 << 10
"""nginx's own default, for a line of a request's head."""


def render(service: Service, choices: Choices) -> Rendered:
    choices = replace(choices, protocol=front_end.protocol(service))
    values: dict[str, Any] = {
        "filters": {"address": _address, "word": _word},
        "front_end": front_end,
        "idle": front_end.idle(service),
        "upstreams": front_end.upstreams(service, choices),
        "listen": _listens(choices.listen),
        "server_names": choices.server_name.split(),
        "head_buffer": _head_buffer(service),
    }
    if choices.protocol:
        keeps = choices.protocol == "fastcgi" and front_end.idle(service) > 0
        text = fill("nginx_vars.conf", service, protocol=choices.protocol, keeps=keeps, **values)
    else:
        connection = f"${service.name.replace('-', '_')}_connection"
        text = fill("nginx.conf", service, connection=connection, **values)
    return Rendered((File(f"{service.name}.conf", text),), tuple(_notes(service, choices)))


def _address(found: TcpAddress | UnixAddress) -> str:
    return _word(f"unix:{found.path}" if isinstance(found, UnixAddress) else str(found))


def _word(text: str) -> str:
    """Quotes one parameter of a directive if nginx would see more than one, or its end."""
    if PLAIN.fullmatch(text):
        return text
    quoted = front_end.checked(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def _listens(listen: str) -> list[str]:
    """A port is listened on for both versions of IP; an address as it is."""
    return [listen, f"[::]:{listen}"] if listen.isdigit() else [listen]


def _head_buffer(service: Service) -> int:
    """Returns the KiB for a line of a request's head that the server accepts; 0 if it sets no limit."""
    limits = (service.config.limit_request_line, service.config.limit_request_field_size)
    return math.ceil(max(max(limits) + DELIMITERS, LEAST_BUFFER) / 1024) if all(limits) else 0


def _notes(service: Service, choices: Choices) -> list[str]:
    found = list(front_end.notes(service, "nginx", choices))
    if service.config.admin_bind:
        ready = service.config.ready_path
        found.append(
            f"nginx itself (but for nginx Plus) asks no server for its health. {ready} at the admin listener is for "
            "what stands in front of nginx."
        )
    return found
