"""A site for nginx: one server behind it, kept connections, WebSockets, forwarded headers."""

from __future__ import annotations

import math
import re

from tricorn.config.addresses import TcpAddress, UnixAddress
from tricorn_tools.init import front_end
from tricorn_tools.init.front_end import Choices
from tricorn_tools.init.service import File, Rendered, Service, lines

IDLE_CONNECTIONS = 32
"""Kept by each of nginx's workers."""

FAIL = "2s"

KEPT = '""'
"""No field `Connection`: HTTP/1.1 keeps connections."""

DELIMITERS = len(": \r\n")
"""Of a header field: the server does not count them, nginx does."""

PLAIN = re.compile(r"[^\s\x00-\x1f\x7f;{}\"'\\#]+")
"""A word that needs no quotes."""

LEAST_BUFFER = 8 << 10
"""nginx's own default, for a line of a request's head."""


def render(service: Service, choices: Choices) -> Rendered:
    return Rendered((File(f"{service.name}.conf", _site(service, choices)),), tuple(_notes(service, choices)))


def _site(service: Service, choices: Choices) -> str:
    variable = f"${service.name.replace('-', '_')}_connection"
    idle = front_end.idle(service)
    return lines(
        f"# {service.name}.conf: written by `tricorn init nginx`, for /etc/nginx/conf.d (it belongs into http {{}}).",
        "",
        "# A WebSocket's handshake is passed on; other connections are kept for the next request.",
        f"map $http_upgrade {variable} {{",
        "    default upgrade;",
        f'    "" {KEPT if idle else "close"};',
        "}",
        "",
        f"upstream {service.name} {{",
        *_servers(service, choices),
        *_kept(service),
        "}",
        "",
        "server {",
        *(f"    listen {_word(address)};" for address in _listens(choices.listen)),
        f"    server_name {' '.join(map(_word, choices.server_name.split()))};",
        "    # For TLS: listen 443 ssl; ssl_certificate …; ssl_certificate_key …;",
        "",
        f"    # {service.says('limit_request_body')}: the server refuses larger ones; 0 is no limit.",
        f"    client_max_body_size {service.config.limit_request_body};",
        *_head_buffers(service),
        "",
        "    location / {",
        f"        proxy_pass http://{service.name};",
        "        proxy_http_version 1.1;",
        f"        proxy_set_header Connection {variable};",
        "        proxy_set_header Upgrade $http_upgrade;",
        *_fields(service),
        "",
        f"        # {front_end.why_read_timeout(service)}",
        "        # A WebSocket is cut when nothing was sent for so long; pings count.",
        f"        proxy_read_timeout {front_end.read_timeout(service)}s;",
        *_next(choices),
        "        # Slow clients wait in the server's core, not in a thread: streams and uploads pass at once.",
        "        proxy_buffering off;",
        "        proxy_request_buffering off;",
        "    }",
        "}",
    )


def _servers(service: Service, choices: Choices) -> list[str]:
    found = front_end.upstreams(service, choices)
    if len(found) == 1:
        return [
            f"    # {service.says('bind')}. One failure does not take the only server out.",
            f"    server {_address(found[0])} max_fails=0;",
        ]
    return [
        "    least_conn;",
        f"    # {service.says('bind')}. A host that refuses a connection is left out for {FAIL}:",
        "    # hosts that are restarted one after another should be further apart than that, as by drain_delay.",
        *(f"    server {_address(address)} fail_timeout={FAIL};" for address in found),
    ]


def _next(choices: Choices) -> list[str]:
    if len(choices.hosts) < 2:
        return []
    return [
        "        # A request that was not sent goes to the next host, whatever its method; a GET also after an error.",
        "        proxy_connect_timeout 2s;",
    ]


def _address(found: TcpAddress | UnixAddress) -> str:
    return _word(f"unix:{found.path}" if isinstance(found, UnixAddress) else str(found))


def _word(text: str) -> str:
    """As one parameter of a directive: in quotes if nginx would see more than one, or its end."""
    if PLAIN.fullmatch(text):
        return text
    quoted = front_end.checked(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def _kept(service: Service) -> list[str]:
    idle = front_end.idle(service)
    if not idle:
        return [f"    # {service.says('keepalive')}: too short for connections that are kept."]
    return [
        f"    keepalive {IDLE_CONNECTIONS};",
        f"    # {service.says('keepalive')}: nginx closes first, so that it never writes into a closing connection.",
        f"    keepalive_timeout {idle}s;",
    ]


def _listens(listen: str) -> list[str]:
    """A port is listened on for both versions of IP; an address as it is."""
    return [listen, f"[::]:{listen}"] if listen.isdigit() else [listen]


def _head_buffers(service: Service) -> list[str]:
    config = service.config
    limits = (config.limit_request_line, config.limit_request_field_size)
    if not all(limits):
        return []
    size = math.ceil(max(max(limits) + DELIMITERS, LEAST_BUFFER) / 1024)
    return [
        f"    # {service.says('limit_request_line', 'limit_request_field_size')}: the server refuses longer ones.",
        f"    large_client_header_buffers 4 {size}k;",
    ]


def _fields(service: Service) -> list[str]:
    return [
        f"        # {front_end.trust(service)}",
        "        proxy_set_header Host $http_host;",
        "        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "        proxy_set_header X-Forwarded-Proto $scheme;",
        "        proxy_set_header X-Forwarded-Host $http_host;",
        "        proxy_set_header X-Forwarded-Port $server_port;",
        f"        # {service.says('queue_timeout')}: what a request waited here counts.",
        '        proxy_set_header X-Request-Start "t=${msec}";',
        "        # What a client says in nginx's place is not passed on.",
        *(f'        proxy_set_header {_word(name)} "";' for name in front_end.spoofable(service)),
    ]


def _notes(service: Service, choices: Choices) -> list[str]:
    found = list(front_end.notes(service, "nginx", choices))
    if service.config.admin_bind:
        ready = service.config.ready_path
        found.append(
            f"nginx itself (but for nginx Plus) asks no server for its health. {ready} at the admin listener is for "
            "what stands in front of nginx."
        )
    return found
