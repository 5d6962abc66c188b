"""A Dockerfile in two stages: what builds stays behind, and the server is process 1 of an ordinary user."""

from __future__ import annotations

import json
import math

from tricorn import __version__
from tricorn.record import Record
from tricorn_tools.init.service import File, Rendered, Service, lines
from tricorn_tools.init.systemd import refuse_daemon

USER = 10001
"""Above those that distributions give to their own users, so that it is none of the host's."""

EXTRAS = frozenset(("gevent", "eventlet", "tornado", "aiohttp"))
"""Worker classes whose library is an extra of the distribution, by the same name."""

INTERVAL, PATIENCE = 30, 5
"""Seconds between two health checks, and for one."""

REQUIREMENTS, PROJECT = "requirements.txt", "pyproject.toml"

IGNORED = (".git", ".venv", "**/__pycache__", "**/*.pyc", ".env", "Dockerfile", "compose.yaml")


class Tree(Record):
    """What the directory of the application has."""

    files: frozenset[str] = frozenset()
    is_project: bool = False
    """Its pyproject.toml has a `[project]`."""


def render(service: Service, tree: Tree) -> Rendered:
    refuse_daemon(service)
    ignore = File(".dockerignore", "".join(f"{name}\n" for name in IGNORED))
    return Rendered((File("Dockerfile", _dockerfile(service, tree)), ignore), tuple(notes(service, tree)))


def _dockerfile(service: Service, tree: Tree) -> str:
    image = f"python:{service.version}-slim"
    return lines(
        "# Written by `tricorn init docker`.",
        f"FROM {image} AS build",
        "RUN python -m venv /venv",
        "ENV PATH=/venv/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1",
        *_installation(service, tree),
        "",
        f"FROM {image}",
        f"# {_why_user(service)}",
        f"RUN useradd --uid {user(service)} --no-create-home --shell /usr/sbin/nologin app"
        if user(service) >= 1000
        else None,
        "COPY --from=build /venv /venv",
        "ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1",
        *(f"ENV {name}={json.dumps(value)}" for name, value in service.variables),
        "WORKDIR /app",
        "COPY . .",
        f"USER {user(service)}:{group(service)}",
        *_ports(service),
        f"# TERM is what ends the server: {service.says('drain_delay', 'graceful_timeout')}.",
        f"# Let it have {service.grace} seconds: docker run --stop-timeout {service.grace}",
        "STOPSIGNAL SIGTERM",
        f"# {service.says('boot_timeout')}: until then a failed check does not count.",
        f"HEALTHCHECK --interval={INTERVAL}s --timeout={PATIENCE}s --start-period={boot(service)}s --retries=3 \\",
        f"    CMD {json.dumps(health(service))}",
        "# Without a shell and without an init: the arbiter is process 1, and reaps what it inherits.",
        f"CMD {json.dumps(command(service))}",
    )


def _installation(service: Service, tree: Tree) -> list[str]:
    package = f"tricorn{_extra(service)}=={__version__}"
    if REQUIREMENTS in tree.files:
        return [
            f"COPY {REQUIREMENTS} .",
            f"# The version that printed this; one that {REQUIREMENTS} names is checked against it.",
            f"RUN pip install -r {REQUIREMENTS} '{package}'",
        ]
    if tree.is_project:
        return ["WORKDIR /app", "COPY . .", f"RUN pip install . '{package}'"]
    return [f"RUN pip install '{package}'"]


def _extra(service: Service) -> str:
    """What the worker class needs besides, as `[gevent]`."""
    name = str(service.config.worker_class)
    return f"[{name}]" if name in EXTRAS else ""


def _why_user(service: Service) -> str:
    return f"{service.says('user')}." if service.is_set("user") else "A user without a name on the host."


def user(service: Service) -> int:
    return service.config.user if service.is_set("user") else USER


def group(service: Service) -> int:
    return service.config.group if service.is_set("group") else user(service)


def _ports(service: Service) -> list[str]:
    found = [address.port for address in service.reachable]
    return [f"# {service.says('bind')}.", f"EXPOSE {' '.join(map(str, found))}"] if found else []


def command(service: Service) -> list[str]:
    return ["tricorn", *service.words]


def health(service: Service) -> list[str]:
    """The words of a check that ends with status 0 while the server is healthy."""
    if service.has_control:
        place = service.config.control_socket
        return ["tricorn", "ctl", *([] if place == "auto" else ["-s", place]), "health"]
    admin = service.admin[0]
    url = f"http://127.0.0.1:{admin.port}{service.config.health_path}"
    return ["python", "-c", f"import urllib.request; urllib.request.urlopen({url!r}, timeout={PATIENCE - 1})"]


def boot(service: Service) -> int:
    """Seconds that a start may take; an hour where there is no limit."""
    return math.ceil(service.config.boot_timeout) or 3600


def notes(service: Service, tree: Tree) -> list[str]:
    """What does not suit a container."""
    config, found = service.config, []
    if REQUIREMENTS not in tree.files and not tree.is_project:
        found.append(
            f"There is neither {REQUIREMENTS} nor a {PROJECT} with [project] in {service.directory}: the image has "
            "tricorn and nothing that the application needs."
        )
    for name in ("errorlog", "accesslog"):
        path = config.value(name)
        if path not in (None, "-"):
            found.append(f'A container logs to its streams: {service.says(name)}. Set {name} = "-".')
    if config.pidfile:
        found.append(f"A container needs no pidfile: {service.says('pidfile')}.")
    if config.tmp_upload_dir:
        found.append(f"Mount a volume at this directory: {service.says('tmp_upload_dir')}.")
    if user(service) == 0:
        found.append(f"The server is root in its container: {service.says('user')}.")
    if config.reload:
        found.append(f"An image does not change: {service.says('reload')} is for development.")
    if service.sockets:
        found.append(
            f"A unix socket is in the container alone, unless its directory is a volume: {service.says('bind')}."
        )
    return found
