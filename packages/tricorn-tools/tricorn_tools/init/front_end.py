"""Parameters of a reverse proxy that follow from the server's settings, whichever proxy it is."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterator

from tricorn.config.addresses import TcpAddress, UnixAddress
from tricorn.errors import ConfigError
from tricorn.record import Record
from tricorn_tools.init.service import Service, is_loopback

HOUR = 3600
SHORT_KEEPALIVE = 5
"""Seconds: a proxy whose connections last shorter opens one for nearly every request."""

ADVISED_KEEPALIVE = 75
"""Seconds: nginx's default for its own clients."""

LATE = 5
"""Seconds that the proxy waits longer than the server, whose answer says more."""


OTHERS_WRITE = 0o002
"""A umask with this bit leaves a socket to its owner and its group: connect(2) asks for the right to write."""


class Choices(Record):
    listen: str = "80"
    server_name: str = "_"
    hosts: tuple[str, ...] = ()
    """Machines that run the server, by names or addresses; none: this one."""
    protocol: str = ""
    """Protocol between the proxy and the server, one of FRONT_ENDS. Empty: HTTP."""


def upstream(service: Service, protocol: str = "") -> TcpAddress | UnixAddress:
    """Returns the address at which the proxy reaches the server: a unix socket if there is one. Raises ConfigError."""
    plain = service.speaking(protocol)
    if service.addresses and not plain and protocol:
        raise ConfigError(
            f"The proxy speaks {protocol}, and no address does: {service.says('bind')}. Add one, as in -b "
            f"{protocol}+unix:/run/app/s."
        )
    if service.addresses and not plain:
        uses = "uses TLS" if all(door.tls for door in service.config.doors) else "speaks something else"
        raise ConfigError(
            f"The proxy connects by plain HTTP, but every address {uses}: {service.says('bind')}. Add one with "
            "http:// or http+unix:, as in -b http://127.0.0.1:8000."
        )
    if sockets := [address for address in service.sockets if address in plain]:
        return sockets[0]
    tcp = [address for address in service.tcp if address in plain]
    if not tcp:
        raise ConfigError(
            f"A proxy needs an address to connect to: {service.says('bind')}. Expected HOST:PORT or unix:PATH; set "
            "the server's address with -b."
        )
    return local(tcp[0])


def upstreams(service: Service, choices: Choices) -> list[TcpAddress | UnixAddress]:
    """Returns the addresses of the servers: the same port on each host. Raises ConfigError."""
    one = upstream(service, choices.protocol)
    if not choices.hosts:
        return [one]
    reachable = [address for address in service.reachable if address in service.speaking(choices.protocol)]
    if isinstance(one, UnixAddress) or not reachable:
        raise ConfigError(
            f"--hosts needs an address that other machines reach: {service.says('bind')}. Expected 0.0.0.0:PORT; set "
            "the servers' address with -b."
        )
    if service.admin and all(map(is_loopback, service.admin)):
        raise ConfigError(
            f"--hosts needs a readiness path that other machines reach: {service.says('admin_bind')}. Expected "
            "0.0.0.0:PORT; set it with --admin-bind."
        )
    return [TcpAddress(host, reachable[0].port) for host in choices.hosts]


def protocol(service: Service) -> str:
    """Returns the protocol between proxy and server: the setting, or that of the first address if none speaks HTTP."""
    if service.config.spoken or service.in_the_clear:
        return service.config.spoken
    return next((door.protocol for door in service.config.doors if door.protocol), "")


def public(choices: Choices) -> TcpAddress:
    """Returns the address of `--public`; a port alone is one of every address. Raises ConfigError."""
    if choices.listen.isdigit():
        return TcpAddress("0.0.0.0", int(choices.listen))
    host, _, port = choices.listen.rpartition(":")
    if not port.isdigit():
        raise ConfigError(f"Invalid value for --public: {choices.listen}: expected PORT or HOST:PORT.")
    return TcpAddress(host.strip("[]") or "0.0.0.0", int(port))


def checked(text: str) -> str:
    """A word for a file of the proxy, which no quoting lets have a line end. Raises ConfigError."""
    if not text.isprintable():
        raise ConfigError(f"Control characters are not allowed in the proxy's configuration: {text!r}.")
    return text


def local(address: TcpAddress) -> TcpAddress:
    """Returns the address that a proxy on this machine connects to."""
    hosts = {"0.0.0.0": "127.0.0.1", "::": "::1"}
    return TcpAddress(hosts.get(address.host, address.host), address.port)


def read_timeout(service: Service) -> int:
    """Seconds for which the proxy waits for an answer."""
    config = service.config
    work = config.request_timeout or config.timeout
    return math.ceil(config.queue_timeout + work) + LATE if config.queue_timeout and work else HOUR


def why_read_timeout(service: Service) -> str:
    work = "request_timeout" if service.config.request_timeout else "timeout"
    return f"{service.says('queue_timeout', work)}, and {LATE}: the server answers before."


def idle(service: Service) -> int:
    """Seconds for which the proxy keeps an idle connection: less than the server. 0: not at all."""
    return max(0, math.floor(service.config.keepalive) - 1)


def spoofable(service: Service) -> list[str]:
    """Header fields by which a client could pretend to be a proxy, beside those that the proxy sets."""
    known = [name for name in service.config.secure_scheme_headers if name != "X-FORWARDED-PROTO"]
    return [name.title() for name in sorted({*known, "FORWARDED", "X-FORWARDED-BY"})]


def trust(service: Service) -> str:
    """Why the server believes what the proxy says."""
    if isinstance(upstream(service), UnixAddress):
        return "The server believes peers on its unix socket."
    return f"The server believes its peers in {service.says('forwarded_allow_ips')}."


def notes(service: Service, proxy: str, choices: Choices) -> Iterator[str]:
    """Settings of the server that do not suit a proxy."""
    return _notes_on_vars(service, proxy, choices) if choices.protocol else _notes_on_http(service, proxy, choices)


def _notes_on_vars(service: Service, proxy: str, choices: Choices) -> Iterator[str]:
    address = upstream(service, choices.protocol)
    if choices.hosts:
        yield f"The address from which {proxy} connects must be in {service.says('uwsgi_allow_ips')}."
    elif isinstance(address, TcpAddress):
        if not believes(service.config.uwsgi_allow_ips, address.host):
            yield f"{proxy} may not ask: {service.says('uwsgi_allow_ips')}. Add the address from which it connects."
    else:
        yield from _notes_on_socket(service, proxy)
    yield f"WebSockets do not pass by this protocol. {proxy} passes them on at an address with HTTP."


def _notes_on_socket(service: Service, proxy: str) -> Iterator[str]:
    if service.config.umask & OTHERS_WRITE and not service.is_set("group"):
        yield (
            f"{proxy} must be able to write to the socket, or answers 502 or 503: with {service.says('umask')} only "
            f"its owner and its group can. Set group to that of {proxy} (www-data on Debian), or run both as one user."
        )


def _notes_on_http(service: Service, proxy: str, choices: Choices) -> Iterator[str]:
    config, address = service.config, upstream(service)
    if choices.hosts:
        yield (
            f"The address from which {proxy} connects must be in {service.says('forwarded_allow_ips')}, and may ask by "
            f"{service.says('admin_allow')}."
        )
    elif isinstance(address, TcpAddress):
        if not believes(config.forwarded_allow_ips, address.host):
            yield (
                f"The server does not believe what {proxy} says of clients: {service.says('forwarded_allow_ips')}. "
                f"Add the address from which {proxy} connects."
            )
        elif service.reachable:
            yield (
                f"If {proxy} is on another machine, its address must be in {service.says('forwarded_allow_ips')}, and "
                "the server's in this file."
            )
    else:
        yield from _notes_on_socket(service, proxy)
    if config.keepalive < SHORT_KEEPALIVE:
        yield (
            f"Connections between {proxy} and the server are short-lived: {service.says('keepalive')}. Behind a proxy, "
            f"keepalive = {ADVISED_KEEPALIVE} saves a connection for most requests."
        )
    if "X-FORWARDED-PROTO" not in config.secure_scheme_headers and not config.trusted_proxy_headers:
        yield f"The server does not read X-Forwarded-Proto, which {proxy} sets: secure_scheme_headers has other names."
    if "forwarded" in config.trusted_proxy_headers:
        yield f"{proxy} sets X-Forwarded-…, not Forwarded: {service.says('trusted_proxy_headers')}. Name those instead."
    if not config.trusted_proxy_headers:
        yield (
            "WSGI applications find the proxy's address in REMOTE_ADDR. For the client's: trusted_proxy_headers = "
            '"x-forwarded-for,x-forwarded-proto,x-forwarded-host"'
        )


def believes(allowed: str, host: str) -> bool:
    """Whether a peer that connects from the address to which it connects, as on one machine, is believed."""
    if allowed == "*":
        return True
    try:
        address = ipaddress.ip_address("127.0.0.1" if host.lower() == "localhost" else host)
    except ValueError:
        return True  # a name: which address it has is found out by a resolver
    return any(address in ipaddress.ip_network(part) for part in allowed.split(",") if part)
