"""The grammar of addresses.

HOST  HOST:PORT  [V6]:PORT  tcp://HOST:PORT  unix:PATH  unix://PATH  unix:@NAME (abstract)  fd://N
"""

from __future__ import annotations

from typing import NamedTuple

from tricorn.config.validators import MOST, Refused, TextList, digits
from tricorn.record import Record

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
MOST_PORT = 65535


class TcpAddress(NamedTuple):
    host: str
    port: int

    @property
    def as_gunicorn(self) -> tuple[str, int]:
        """Returns the address in gunicorn's form, for `server.address` of hooks."""
        return self.host.lower(), self.port

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class UnixAddress(NamedTuple):
    path: str
    """A leading NUL makes it abstract: a name in the network namespace and no file."""

    @property
    def abstract(self) -> bool:
        return self.path.startswith("\0")

    @property
    def as_gunicorn(self) -> str:
        return self.path

    def __str__(self) -> str:
        return "unix:" + self.path.replace("\0", "@", 1)


class FdAddress(NamedTuple):
    fd: int

    @property
    def as_gunicorn(self) -> int:
        return self.fd

    def __str__(self) -> str:
        return f"fd://{self.fd}"


Address = TcpAddress | UnixAddress | FdAddress


def parse(text: str) -> Address:
    """Reads an address; Refused says what is wrong with it."""
    scheme, rest = _split_scheme(text.strip())
    if scheme == "unix":
        return UnixAddress(_unix_path(rest))
    if scheme == "fd":
        number = digits(rest, MOST)
        if number is None:
            raise Refused("expected fd://N with the number of a descriptor")
        return FdAddress(number)
    if rest.startswith("["):
        host, bracket, port = rest[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise Refused("expected [V6ADDRESS]:PORT")
        return TcpAddress(host, _port(port[1:]))
    if rest.count(":") > 1:
        raise Refused("put a v6 address in brackets, as in [::1]:8000")
    host, _, port = rest.partition(":")
    if host.isdigit() and not port:
        raise Refused(f"a number alone is a port: put a colon before it, as in :{host}")
    return TcpAddress(host or "0.0.0.0", _port(port))


def join(host: str | None, port: str | None) -> str:
    """The address of a host and a port that were given apart; either may be missing."""
    host = DEFAULT_HOST if host is None else host
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{host}:{DEFAULT_PORT if port is None else port}"


class Addresses(Record):
    """At least `least` addresses to listen on."""

    metavar: str = "ADDRESS"
    least: int = 1

    def parse(self, raw: object) -> tuple[str, ...]:
        parts = tuple(raw.split(",")) if isinstance(raw, str) else raw
        values = TextList().parse(parts)
        if len(values) < self.least:
            raise Refused("expected at least one address")
        for value in values:
            try:
                self.read(value)
            except Refused as error:
                raise Refused(str(error) if len(values) == 1 else f"{value}: {error}") from None
        return values

    def read(self, text: str) -> Address:
        """The address that a text names. Raises Refused."""
        return parse(text)


def _split_scheme(text: str) -> tuple[str, str]:
    scheme, found, rest = text.partition("://")
    if found:
        if scheme not in ("tcp", "unix", "fd"):
            raise Refused(f"expected tcp://, unix:// or fd://, got {scheme}://")
        return scheme, rest
    if text.startswith("unix:"):
        return "unix", text[len("unix:") :]
    return "tcp", text


def _unix_path(path: str) -> str:
    if path.startswith("@"):
        path = "\0" + path[1:]
    if not path.strip("\0"):
        raise Refused("expected a path, as in unix:/run/tricorn.sock")
    return path


def _port(text: str) -> int:
    if not text:
        return DEFAULT_PORT
    number = digits(text, MOST_PORT)
    if number is None:
        raise Refused(f"{text!r} is not a valid port number")
    return number
