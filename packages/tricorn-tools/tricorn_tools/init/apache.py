"""A site for Apache httpd 2.4: one server behind it, kept connections, WebSockets, forwarded headers; or by vars."""

from __future__ import annotations

import math
import os
import re
from typing import Any

from tricorn.config.addresses import TcpAddress, UnixAddress
from tricorn.errors import ConfigError
from tricorn.record import replace
from tricorn_tools.init import front_end
from tricorn_tools.init.front_end import Choices
from tricorn_tools.init.service import File, Rendered, Service
from tricorn_tools.init.template import fill

SCHEMES = {"": "http", "uwsgi": "uwsgi", "fastcgi": "fcgi", "scgi": "scgi"}
"""Schemes of proxied URLs, by the protocol that the server speaks there."""

MODULES = {
    "": ("proxy_http", "headers"),
    "uwsgi": ("proxy_uwsgi",),
    "fastcgi": ("proxy_fcgi",),
    "scgi": ("proxy_scgi",),
}
"""Modules for `a2enmod`; `proxy` comes with each of the others."""

BALANCER = ("proxy_balancer", "lbmethod_bybusyness")

LISTENED = (80, 443)
"""Ports that Debian's ports.conf has: a second Listen for one of them fails."""

LINE = 8190
"""Bytes of a line of a request's head that Apache takes by default."""
FIELDS = 100
"""Fields that it takes by default."""

PLAIN = re.compile(r"[\w.:*\[\]-]+")
"""A word that is not quoted."""

ENDS_PATH = "|?#"
"""Characters that a unix socket's path cannot have in a URL of mod_proxy."""


def render(service: Service, choices: Choices) -> Rendered:
    choices = replace(choices, protocol=front_end.protocol(service))
    upstreams = front_end.upstreams(service, choices)
    public = front_end.public(choices)
    names = [] if choices.server_name == "_" else choices.server_name.split()
    values: dict[str, Any] = {
        "filters": {"word": _word},
        "front_end": front_end,
        "protocol": choices.protocol,
        "modules": (*MODULES[choices.protocol], *(BALANCER if len(upstreams) > 1 else ())),
        "names": names,
        "public": TcpAddress("*", public.port) if public.host == "0.0.0.0" else public,
        "listens": public.port not in LISTENED,
        "urls": [_url(service, choices.protocol, each, slash=len(upstreams) == 1) for each in upstreams],
        "parameters": _parameters(service, choices, several=len(upstreams) > 1),
        "limits": dict(_limits(service)),
    }
    text = fill("apache.conf", service, **values)
    return Rendered((File(f"{service.name}.conf", text),), tuple(front_end.notes(service, "Apache", choices)))


def _url(service: Service, protocol: str, address: TcpAddress | UnixAddress, *, slash: bool) -> str:
    scheme, end = SCHEMES[protocol], "/" if slash else ""
    if isinstance(address, TcpAddress):
        return f"{scheme}://{address}{end}"
    if found := next((each for each in ENDS_PATH if each in address.path), None):
        raise ConfigError(
            f"mod_proxy cannot connect to a unix socket with {found} in its path: {service.says('bind')}. Rename it."
        )
    path = os.path.join(service.config.chdir or service.directory, address.path)
    return f"unix:{path}|{scheme}://{service.name}{end}"


def _parameters(service: Service, choices: Choices, *, several: bool) -> str:
    """Returns what Apache is told of its connections to the server, in the order of the comments above them."""
    idle = front_end.idle(service)
    words = ["retry=2", "connectiontimeout=2"] if several else ["retry=0"]
    if choices.protocol in ("", "fastcgi"):
        words.append(f"ttl={idle}" if idle else "disablereuse=on")
    if choices.protocol == "fastcgi" and idle:
        words.append("enablereuse=on")
    words += [f"timeout={front_end.read_timeout(service)}", "flushpackets=on"]
    if not choices.protocol:
        words.append("upgrade=websocket")
    return " ".join(words)


def _limits(service: Service) -> dict[str, int]:
    """Directives for a head that the server accepts, and Apache by default does not."""
    config = service.config
    found = {
        "LimitRequestLine": config.limit_request_line,
        "LimitRequestFieldSize": config.limit_request_field_size,
        "LimitRequestFields": config.limit_request_fields,
    }
    least = {"LimitRequestFields": FIELDS}
    return {name: math.ceil(value) for name, value in found.items() if value > least.get(name, LINE)}


def _word(text: str) -> str:
    """Quotes one argument of a directive. Raises ConfigError for what no quotes protect."""
    if "${" in front_end.checked(text):
        raise ConfigError(f"Apache would replace ${{…}} in its configuration: {text!r}. Choose another name.")
    if PLAIN.fullmatch(text):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'
