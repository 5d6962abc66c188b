"""A Dockerfile in two stages: what builds stays behind, and the server is process 1 of an ordinary user."""

from __future__ import annotations

import math
from typing import Any

from tricorn import __version__
from tricorn.record import Record
from tricorn_tools.init.service import File, Rendered, Service
from tricorn_tools.init.systemd import refuse_daemon
from tricorn_tools.init.template import fill

USER = 10001
"""Above those that distributions give to their own users, so that it is none of the host's."""

EXTRAS = frozenset(("gevent", "eventlet", "tornado", "aiohttp"))
"""Worker classes whose library is an extra of the distribution, by the same name."""

INTERVAL, PATIENCE = 30, 5
"""Seconds between two health checks, and for one."""

REQUIREMENTS, PROJECT = "requirements.txt", "pyproject.toml"


class Tree(Record):
    """Contents of the application's directory."""

    files: frozenset[str] = frozenset()
    is_project: bool = False
    """Its pyproject.toml has a `[project]`."""


def render(service: Service, tree: Tree) -> Rendered:
    refuse_daemon(service)
    text = fill(
        "Dockerfile",
        service,
        has_requirements=REQUIREMENTS in tree.files,
        is_project=tree.is_project,
        package=f"tricorn{_extra(service)}=={__version__}",
        **values(service),
    )
    files = (File("Dockerfile", text), File(".dockerignore", fill("dockerignore", service)))
    return Rendered(files, tuple(notes(service, tree)))


def values(service: Service) -> dict[str, Any]:
    """Returns the values that the templates of all containers use."""
    return {
        "command": command(service),
        "user": user(service),
        "group": group(service),
        "health": health(service),
        "boot": boot(service),
        "interval": INTERVAL,
        "patience": PATIENCE,
    }


def _extra(service: Service) -> str:
    """Returns the extra of the worker class, such as `[gevent]`."""
    name = str(service.config.worker_class)
    return f"[{name}]" if name in EXTRAS else ""


def user(service: Service) -> int:
    return service.config.user if service.is_set("user") else USER


def group(service: Service) -> int:
    return service.config.group if service.is_set("group") else user(service)


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
    """Returns a sentence for each setting that does not suit a container."""
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
