"""A whole haproxy.cfg: health by the readiness path, kept connections, WebSockets, forwarded headers."""

from __future__ import annotations

import math
import re

from tricorn.config.addresses import TcpAddress, UnixAddress
from tricorn_tools.init import front_end
from tricorn_tools.init.front_end import Choices
from tricorn_tools.init.service import File, Rendered, Service, is_loopback
from tricorn_tools.init.template import fill

EVERY, FALL = 1, 2
"""Seconds between two checks, and how many that fail take the server out."""

SPECIAL = re.compile(r"[\s\\#\"']")


def render(service: Service, choices: Choices) -> Rendered:
    upstreams = front_end.upstreams(service, choices)
    check_at, admin_port = _checked_at(service, choices)
    text = fill(
        "haproxy.cfg",
        service,
        filters={"address": _address, "duration": _duration, "word": _word},
        front_end=front_end,
        listen=f":{choices.listen}" if choices.listen.isdigit() else choices.listen,
        upstreams=upstreams,
        every=EVERY,
        fall=FALL,
        check_at=check_at,
        admin_port=admin_port,
    )
    return Rendered((File("haproxy.cfg", text),), tuple(_notes(service, choices)))


def _duration(seconds: float) -> str:
    return f"{math.ceil(seconds * 1000)}ms" if seconds != int(seconds) else f"{int(seconds)}s"


def _checked_at(service: Service, choices: Choices) -> tuple[str, int]:
    """Returns the words that say where a server is checked, if not at its own address, and the port."""
    if not service.admin:
        return "", 0
    if choices.hosts:
        port = next(each.port for each in service.admin if not is_loopback(each))
        return f" port {port}", port
    admin = front_end.local(service.admin[0])
    server = front_end.upstream(service)
    elsewhere = not isinstance(server, TcpAddress) or server.host != admin.host
    return f"{f' addr {admin.host}' if elsewhere else ''} port {admin.port}", admin.port


def _address(found: TcpAddress | UnixAddress) -> str:
    return _word(f"unix@{found.path}" if isinstance(found, UnixAddress) else f"{found.host}:{found.port}")


def _word(text: str) -> str:
    """Escapes one argument of a keyword: a backslash before what would end it, or begin a comment or quotes."""
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
