"""A unit for systemd, hardened; with `--socket` one that listens before the server runs."""

from __future__ import annotations

import math
import os

from tricorn.config.addresses import FdAddress, TcpAddress, UnixAddress
from tricorn.errors import ConfigError
from tricorn.record import Record
from tricorn_tools.init.service import File, Rendered, Service
from tricorn_tools.init.template import Filters, fill

NOTIFY_RELOAD = 253
"""The first version that has `Type=notify-reload`."""
TIME_TO_START = 10
"""Seconds beside `boot_timeout`, for what the arbiter does before and after."""


class Choices(Record):
    """Options of `tricorn init systemd`."""

    socket: bool = False
    version: int = NOTIFY_RELOAD
    """Version of systemd."""
    root: bool = False
    """Whether files are printed by root, whose name no service should have."""
    login: str = ""
    """The user who prints."""


def render(service: Service, choices: Choices) -> Rendered:
    refuse_daemon(service)
    if any(isinstance(address, FdAddress) for address in service.addresses):
        raise ConfigError(
            f"A unit cannot bind to {service.says('bind')}. For socket activation use addresses with `tricorn init "
            "systemd --socket`."
        )
    files = [File(f"{service.name}.service", _service(service, choices))]
    if choices.socket:
        files.append(File(f"{service.name}.socket", fill("systemd.socket", service, filters=FILTERS)))
    return Rendered(tuple(files), tuple(_notes(service, choices)))


def refuse_daemon(service: Service) -> None:
    """Raises ConfigError for a server that leaves what supervises it."""
    if service.config.daemon:
        raise ConfigError(
            f"{service.says('daemon')}: a server under a supervisor stays in the foreground. Remove the setting."
        )


def _service(service: Service, choices: Choices) -> str:
    runtime, written = directories(service)
    return fill(
        "systemd.service",
        service,
        filters=FILTERS,
        choices=choices,
        notify_reload=NOTIFY_RELOAD,
        time_to_start=TIME_TO_START,
        limit_of_reload=_limit_of_reload(service),
        command=command(service),
        runtime=runtime,
        written=written,
        socket_in_runtime=any(os.path.dirname(each.path) == f"/run/{runtime}" for each in service.sockets),
        in_home=_in_home(service),
    )


def _limit_of_reload(service: Service) -> int | None:
    """Seconds in which a server starts, and reloads; None without a limit. With canaries the others boot after them."""
    config = service.config
    if not config.boot_timeout:
        return None
    watched = config.boot_timeout + config.canary_time if config.canary else 0.0
    return math.ceil(config.boot_timeout + watched) + TIME_TO_START


def directories(service: Service) -> tuple[str, list[str]]:
    """The name of the directory under /run, and other directories that have to be writable."""
    written = service.writes()
    under_run = [path for path in written if os.path.dirname(path) == "/run"]
    wanted = {os.path.dirname(address.path) for address in service.sockets}
    chosen = next((path for path in under_run if path in wanted), None)
    runtime = os.path.basename(chosen) if chosen else f"tricorn-{service.name}"
    return runtime, [path for path in written if path != f"/run/{runtime}"]


def _in_home(service: Service) -> bool:
    """Whether the application or its Python is where `ProtectHome=yes` hides everything."""
    needed = (service.directory, service.python, service.config.chdir or "/")
    return any(path.startswith(("/home/", "/root/", "/run/user/")) for path in needed)


def command(service: Service) -> list[str]:
    """The whole command line, absolute."""
    script = os.path.join(os.path.dirname(service.python), "tricorn")
    start = [script] if os.access(script, os.X_OK) else [service.python, "-m", "tricorn"]
    return [*start, *service.words]


def _listen(address: TcpAddress | UnixAddress | FdAddress) -> str:
    if isinstance(address, UnixAddress):
        return address.path.replace("\0", "@", 1)
    return str(address)


def _notes(service: Service, choices: Choices) -> list[str]:
    notes = []
    hidden = [path for path in (service.directory, service.python) if path.startswith("/root/")]
    if hidden and choices.root and not service.is_set("user"):
        notes.append(
            f"{hidden[0]} is in root's home, which the service's user cannot read: move it, to /srv for example."
        )
    if choices.socket and service.config.reuse_port:
        notes.append("reuse_port has no effect with a .socket unit: its socket is shared by all workers.")
    names = " ".join(f"{service.name}.{kind}" for kind in (("socket", "service") if choices.socket else ("service",)))
    notes.append(
        f"To install: copy to /etc/systemd/system, then `systemctl daemon-reload && systemctl enable --now {names}`."
    )
    return notes


def _quoted(word: str, *, dollar: bool = True) -> str:
    """A word of a line of a unit (systemd.service(5), "Command lines")."""
    text = _escaped(word).replace("\\", "\\\\").replace('"', '\\"')
    text = text.replace("$", "$$") if dollar else text
    plain = text and not any(character in text for character in " \t\"'\\;")
    return text if plain else f'"{text}"'


def _escaped(text: str) -> str:
    """Escapes specifiers and joins lines."""
    return text.replace("%", "%%").replace("\n", " ")


FILTERS: Filters = {"escaped": _escaped, "quoted": _quoted, "listen": _listen}
