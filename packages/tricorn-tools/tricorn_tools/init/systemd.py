"""A unit for systemd, hardened; with `--socket` one that listens before the server runs."""

from __future__ import annotations

import math
import os

from tricorn.config.addresses import FdAddress, TcpAddress, UnixAddress
from tricorn.errors import ConfigError
from tricorn.record import Record
from tricorn_tools.init.service import File, Rendered, Service, lines, mebibytes

NOTIFY_RELOAD = 253
"""The first version that has `Type=notify-reload`."""
WATCHDOG = 30
TIME_TO_START = 10
"""Seconds beside `boot_timeout`, for what the arbiter does before and after."""


class Choices(Record):
    """What the command line of `tricorn init systemd` asks for."""

    socket: bool = False
    version: int = NOTIFY_RELOAD
    """Of systemd."""
    root: bool = False
    """Whether files are printed by root, whose name no service should have."""
    login: str = ""
    """The user who prints."""


def render(service: Service, choices: Choices) -> Rendered:
    refuse_daemon(service)
    if any(isinstance(address, FdAddress) for address in service.addresses):
        raise ConfigError(
            f"A unit cannot bind to {service.says('bind')}: descriptors come from a .socket unit, which "
            "`tricorn init systemd --socket` makes of addresses."
        )
    files = [File(f"{service.name}.service", _service(service, choices))]
    if choices.socket:
        files.append(File(f"{service.name}.socket", _socket(service)))
    return Rendered(tuple(files), tuple(_notes(service, choices)))


def refuse_daemon(service: Service) -> None:
    """Raises ConfigError for a server that leaves what supervises it."""
    if service.config.daemon:
        raise ConfigError(
            f"{service.says('daemon')}: a server under a supervisor stays in the foreground. Remove the setting."
        )


def _service(service: Service, choices: Choices) -> str:
    config = service.config
    reloads = choices.version >= NOTIFY_RELOAD
    wanted = f"Requires={service.name}.socket\n" if choices.socket else ""
    return f"{_head(service)}{wanted}" + lines(
        "",
        "[Service]",
        "# READY is sent when a worker serves, RELOADING and READY around a reload.",
        "Type=notify-reload" if reloads else "Type=notify",
        None if reloads else f"# systemd before {NOTIFY_RELOAD} has no notify-reload: the reload is a signal there.",
        None if reloads else "ExecReload=/bin/kill -HUP $MAINPID",
        "NotifyAccess=main",
        f"WorkingDirectory={_escaped(service.directory)}",
        *(f"Environment={_quoted(f'{name}={value}', dollar=False)}" for name, value in service.variables),
        f"ExecStart={' '.join(map(_quoted, command(service)))}",
        "",
        "# TERM goes to the arbiter, which ends its workers; KILL goes to all.",
        "KillMode=mixed",
        f"# {service.says('drain_delay', 'graceful_timeout')}, and 5 for the end of the processes.",
        f"TimeoutStopSec={service.grace}",
        f"# {service.says('boot_timeout')}, and {TIME_TO_START}; it is the limit of a reload, too.",
        f"TimeoutStartSec={math.ceil(config.boot_timeout) + TIME_TO_START if config.boot_timeout else 'infinity'}",
        "# The arbiter pings twice as often.",
        f"WatchdogSec={WATCHDOG}",
        "Restart=on-failure",
        "# Status 1 is a setting that cannot be used, 2 a flag: another start would end the same way.",
        "RestartPreventExitStatus=1 2",
        "",
        *_directories(service),
        "",
        *_identity(service, choices),
        "",
        *_hardening(service, choices),
        "",
        *_memory(service),
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    )


def _head(service: Service) -> str:
    return lines(
        f"# {service.name}.service: written by `tricorn init systemd`. Install it in /etc/systemd/system.",
        "[Unit]",
        f"Description={_escaped(service.config.wsgi_app or service.name)}, served by tricorn",
        "After=network.target",
    )


def _directories(service: Service) -> list[str]:
    """Where the server writes: all else is read-only."""
    runtime, others = places(service)
    found = [
        f"# /run/{runtime}: the control socket is there (`tricorn ctl`){_also_sockets(service, runtime)}.",
        f"RuntimeDirectory={runtime}",
        f"# /var/lib/{service.name}: a place for files of the application ($STATE_DIRECTORY).",
        f"StateDirectory={service.name}",
    ]
    if others:
        found += ["# Directories that settings name.", f"ReadWritePaths={' '.join(map(_quoted, others))}"]
    return found


def places(service: Service) -> tuple[str, list[str]]:
    """The name of the directory under /run, and other directories that have to be writable."""
    written = service.writes()
    under_run = [path for path in written if os.path.dirname(path) == "/run"]
    wanted = {os.path.dirname(address.path) for address in service.sockets}
    chosen = next((path for path in under_run if path in wanted), None)
    runtime = os.path.basename(chosen) if chosen else f"tricorn-{service.name}"
    return runtime, [path for path in written if path != f"/run/{runtime}"]


def _also_sockets(service: Service, runtime: str) -> str:
    here = any(os.path.dirname(address.path) == f"/run/{runtime}" for address in service.sockets)
    return ", and the socket of `bind`" if here else ""


def _identity(service: Service, choices: Choices) -> list[str]:
    config = service.config
    if service.is_set("user"):
        group = [f"Group={config.group}"] if service.is_set("group") else []
        return [f"# {service.says('user')}: systemd changes to it, for the arbiter too.", f"User={config.user}", *group]
    if choices.root:
        return ["# A user that exists while the service runs. An own user: User=NAME.", "DynamicUser=yes"]
    return ["# The user who ran `tricorn init`.", f"User={_escaped(choices.login)}"]


def _hardening(service: Service, choices: Choices) -> list[str]:
    ports = [] if choices.socket else service.low_ports
    capability = "CAP_NET_BIND_SERVICE" if ports else ""
    return [
        f"# Ports below 1024: {', '.join(map(str, ports))}." if ports else "# No capability is needed.",
        *([f"AmbientCapabilities={capability}"] if ports else []),
        f"CapabilityBoundingSet={capability}",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        f"ProtectHome={_home(service)}",
        "# Bodies of slow clients are spooled there.",
        "PrivateTmp=yes",
        "PrivateDevices=yes",
        "ProtectClock=yes",
        "ProtectControlGroups=yes",
        "ProtectHostname=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "LockPersonality=yes",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
        "SystemCallArchitectures=native",
        "# process_vm_readv: the server reads stacks of its own threads, to say what blocks it.",
        "SystemCallFilter=@system-service process_vm_readv",
        "SystemCallErrorNumber=EPERM",
    ]


def _home(service: Service) -> str:
    """`yes` hides /home and /root: not where the application or its Python is there."""
    needed = (service.directory, service.python, service.config.chdir or "/")
    return "read-only" if any(path.startswith(("/home/", "/root/", "/run/user/")) for path in needed) else "yes"


def _memory(service: Service) -> list[str]:
    if service.memory is None:
        return [f"# With {service.without_memory} set, a limit of all processes follows from it: MemoryMax=."]
    return [
        f"# {service.says('workers', 'max_worker_memory')}: twice, for the generations of a reload, and the arbiter.",
        f"MemoryMax={mebibytes(service.memory)}M",
    ]


def command(service: Service) -> list[str]:
    """The whole command line, absolute."""
    script = os.path.join(os.path.dirname(service.python), "tricorn")
    start = [script] if os.access(script, os.X_OK) else [service.python, "-m", "tricorn"]
    return [*start, *service.words]


def _socket(service: Service) -> str:
    return lines(
        f"# {service.name}.socket: connections wait here while the server is started anew.",
        "[Unit]",
        f"Description=Sockets of {service.name}",
        "",
        "[Socket]",
        f"# {service.says('bind')}: the server takes these sockets in place of it.",
        *(f"ListenStream={_escaped(_listen(address))}" for address in service.addresses),
        f"Backlog={service.config.backlog}",
        *(["# The proxy is another user.", "SocketMode=0666"] if service.sockets else []),
        "",
        "[Install]",
        "WantedBy=sockets.target",
    )


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
    """Without specifiers, and on one line."""
    return text.replace("%", "%%").replace("\n", " ")
