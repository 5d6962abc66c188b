"""A whole haproxy.cfg: health by the readiness path, kept connections, WebSockets, forwarded headers."""

from __future__ import annotations

import math
import re

from tricorn.config.addresses import TcpAddress, UnixAddress
from tricorn_tools.init import front_end
from tricorn_tools.init.front_end import Choices
from tricorn_tools.init.service import File, Rendered, Service, is_loopback, lines

EVERY, FALL = 1, 2
"""Seconds between two checks, and how many that fail take the server out."""

AGENT_EVERY = 2
"""Seconds between two questions for a host's weight, which moves ten points a second at most."""

SPECIAL = re.compile(r"[\s\\#\"']")

PURGE = 1
"""Seconds in which half of the idle connections are closed."""


def render(service: Service, choices: Choices) -> Rendered:
    return Rendered((File("haproxy.cfg", _configuration(service, choices)),), tuple(_notes(service, choices)))


def _configuration(service: Service, choices: Choices) -> str:
    listen = f":{choices.listen}" if choices.listen.isdigit() else choices.listen
    return lines(
        "# haproxy.cfg: written by `tricorn init haproxy`.",
        "global",
        "    log stdout format raw local0 info",
        "",
        "defaults",
        "    mode http",
        "    log global",
        "    option httplog",
        "    option dontlognull",
        "    timeout connect 5s",
        f"    # {service.says('header_timeout')}.",
        f"    timeout http-request {_seconds(service.config.header_timeout)}",
        f"    # {front_end.why_read_timeout(service)}",
        f"    timeout server {front_end.read_timeout(service)}s",
        "    # As long: a client that waits for its answer sends nothing.",
        f"    timeout client {front_end.read_timeout(service)}s",
        "    timeout http-keep-alive 75s",
        "    # WebSockets, when nothing is sent.",
        "    timeout tunnel 1h",
        "",
        f"frontend {service.name}",
        f"    bind {_word(listen)}",
        "    # For TLS: bind :443 ssl crt FILE",
        *_fields(service),
        f"    default_backend {service.name}",
        "",
        f"backend {service.name}",
        *_balance(choices),
        *_check(service),
        f"    # {service.says('keepalive')}: idle connections serve all clients; a GET is tried again on another.",
        "    http-reuse safe",
        "    retry-on conn-failure empty-response",
        "    http-request disable-l7-retry unless METH_GET",
        f"    # {service.says('bind')}. Another machine is another line.",
        *_weights(service, choices),
        *_servers(service, choices),
    )


def _balance(choices: Choices) -> list[str]:
    if len(choices.hosts) < 2:
        return []
    return [
        "    balance leastconn",
        "    # A connection that a host refuses is made to another one, for every method: nothing was sent.",
        "    option redispatch 1",
    ]


def _weights(service: Service, choices: Choices) -> list[str]:
    """What the agent of each host is asked for, or what to write without one."""
    if len(choices.hosts) < 2:
        return []
    if not service.admin:
        return ["    # For one queue of all hosts: `maxconn N` on each line, N being what a host runs at once."]
    return [
        "    # The agent tells the weight of a host: its speed, in hundredths of its best.",
        '    # Asked for "agent\\n" it tells `maxconn`, too, for one queue of all hosts.',
        "    # That is for one or two HAProxies, since each counts its own requests only.",
    ]


def _servers(service: Service, choices: Choices) -> list[str]:
    addresses = front_end.upstreams(service, choices)
    check = _server_check(service, choices)
    return [
        f"    server {service.name}-{number} {_address(address)} {check} pool-purge-delay {PURGE}s"
        for number, address in enumerate(addresses, 1)
    ]


def _seconds(number: float) -> str:
    return f"{math.ceil(number * 1000)}ms" if number != int(number) else f"{int(number)}s"


def _fields(service: Service) -> list[str]:
    return [
        "    # What a client says in HAProxy's place is not passed on.",
        *(f"    http-request del-header {_word(name)}" for name in front_end.spoofable(service)),
        f"    # {front_end.trust(service)}",
        "    option forwardfor",
        "    http-request set-header X-Forwarded-Proto http unless { ssl_fc }",
        "    http-request set-header X-Forwarded-Proto https if { ssl_fc }",
        "    http-request set-header X-Forwarded-Host %[req.hdr(Host)]",
        "    http-request set-header X-Forwarded-Port %[dst_port]",
        f"    # {service.says('queue_timeout')}: what a request waited here counts.",
        "    http-request set-header X-Request-Start t=%[date(0,ms)]",
    ]


def _check(service: Service) -> list[str]:
    if not service.admin:
        return [
            "    # Without admin_bind there is no readiness path: a connection that is accepted is all that is checked."
        ]
    return [
        f"    # {service.says('admin_bind', 'ready_path')}.",
        "    option httpchk",
        f"    http-check send meth GET uri {_word(service.config.ready_path)} ver HTTP/1.1 hdr Host tricorn",
        "    http-check expect status 200",
    ]


def _server_check(service: Service, choices: Choices) -> str:
    often = f"check inter {EVERY}s fall {FALL} rise 1"
    if not service.admin:
        return often
    if choices.hosts:
        port = next(each.port for each in service.admin if not is_loopback(each))
        return f"{often} port {port}{_agent(port) if len(choices.hosts) > 1 else ''}"
    admin = front_end.local(service.admin[0])
    server = front_end.upstream(service)
    elsewhere = not isinstance(server, TcpAddress) or server.host != admin.host
    return f"{often} addr {admin.host} port {admin.port}" if elsewhere else f"{often} port {admin.port}"


def _agent(port: int) -> str:
    return f' weight 100 agent-check agent-port {port} agent-inter {AGENT_EVERY}s agent-send "weight\\n"'


def _address(found: TcpAddress | UnixAddress) -> str:
    return _word(f"unix@{found.path}" if isinstance(found, UnixAddress) else f"{found.host}:{found.port}")


def _word(text: str) -> str:
    """As one argument of a keyword: a backslash stands before what would end it, or begin a comment or quotes."""
    return SPECIAL.sub(r"\\\g<0>", front_end.checked(text))


def _notes(service: Service, choices: Choices) -> list[str]:
    found = list(front_end.notes(service, "HAProxy", choices))
    notices = EVERY * FALL + 1
    if not service.admin:
        found.append(
            f'Set admin_bind = "127.0.0.1:8001": HAProxy then checks {service.config.ready_path}, and knows {notices} '
            "s after TERM that the server leaves."
        )
    elif service.config.drain_delay < notices:
        found.append(
            f"With several servers behind HAProxy set drain_delay = {notices}: one that leaves is taken out before "
            f"it stops to accept ({service.says('drain_delay')})."
        )
    return found
