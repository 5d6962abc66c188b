"""Flags that a configuration lacks for a container, and the sentences that say so.

A flag on the command line is stronger than files and variables. Where the command line itself is what does not fit,
nothing is added: ConfigError says what to give instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from tricorn.config.addresses import DEFAULT_PORT, FdAddress
from tricorn.errors import ConfigError
from tricorn.record import Record
from tricorn_tools.init.service import Service, is_loopback

DRAIN = 10
"""Seconds in which load balancers of a cluster usually notice that a pod leaves."""

KUBERNETES, DOCKER, COMPOSE = "kubernetes", "docker", "compose"
CONTAINERS = (DOCKER, COMPOSE, KUBERNETES)


class Addition(Record):
    flags: tuple[str, ...]
    setting: str
    """Line of a configuration file."""
    why: str

    @property
    def sentence(self) -> str:
        return f"Added to the command line: {' '.join(self.flags)}. {self.why} In a configuration file: {self.setting}"


def additions(kind: str, service: Service) -> Iterator[Addition]:
    """Yields the flags that files of this kind need. Raises ConfigError."""
    if kind not in CONTAINERS:
        return
    _refuse_descriptors(service)
    if not service.reachable and (service.tcp or kind == KUBERNETES):
        yield _bind(kind, service)
    if kind == KUBERNETES and not any(not is_loopback(address) for address in service.admin):
        yield _admin(service, "0.0.0.0", "Probes and Prometheus ask there.")
    elif kind != KUBERNETES and not service.has_control and not service.admin:
        yield _admin(service, "127.0.0.1", "There is no control socket, so that the health check asks there.")
    if kind == KUBERNETES and not service.is_set("drain_delay"):
        why = "A pod that leaves gets new requests until every proxy has heard of it."
        yield Addition(("--drain-delay", str(DRAIN)), f"drain_delay = {DRAIN}", why)


def _refuse_descriptors(service: Service) -> None:
    if any(isinstance(address, FdAddress) for address in service.addresses):
        raise ConfigError(f"A container inherits no descriptors: {service.says('bind')}. Expected HOST:PORT.")


def _bind(kind: str, service: Service) -> Addition:
    port = next((address.port for address in service.tcp), DEFAULT_PORT)
    wanted = f"0.0.0.0:{port}"
    _refuse_command_line(service, "bind", ("-b", "--bind", "--host", "--port"), wanted)
    what = "no address of `bind` is a TCP address" if not service.tcp else "only the container itself reaches 127.0.0.1"
    return Addition(("-b", wanted), f'bind = "{wanted}"', f"{what[0].upper()}{what[1:]} ({service.says('bind')}).")


def _admin(service: Service, host: str, why: str) -> Addition:
    taken = {address.port for address in service.tcp}
    given = next((address.port for address in service.admin), None)
    port = given if given is not None else next(number for number in range(8001, 9000) if number not in taken)
    wanted = f"{host}:{port}"
    _refuse_command_line(service, "admin_bind", ("--admin-bind",), wanted)
    return Addition(("--admin-bind", wanted), f'admin_bind = "{wanted}"', why)


def _refuse_command_line(service: Service, name: str, flags: tuple[str, ...], wanted: str) -> None:
    """A second address would stand beside the first one, and both want the port."""
    if service.config.origin(name) in flags:
        raise ConfigError(
            f"This address is reachable only inside the container: {service.says(name)}. Use {flags[0]} {wanted}."
        )
