"""The grammar of `bind`: an address, and what is spoken there.

http://HOST:PORT  https://HOST:PORT  http+unix:PATH  https+unix:PATH  http+fd://N  https+fd://N, and the same with
uwsgi, scgi and fastcgi, each with options behind a `?`: ?proxy_protocol=off|v1|v2|auto&proxy_protocol_required=on|off

An address without such a scheme (`config.addresses`) is one as well: other settings say what is spoken there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from tricorn.config import addresses
from tricorn.config.addresses import Address, Addresses, TcpAddress
from tricorn.config.validators import Boolean, Choice, Invalid, Refused
from tricorn.record import Record
from tricorn.spelling import hint

T = TypeVar("T")


class Door(Record):
    """Endpoint of a listener, as `bind` has it. None: other settings decide."""

    address: Address
    tls: bool | None = None
    proxy_protocol: str | None = None
    proxy_protocol_required: bool | None = None
    protocol: str = ""
    """Protocol of front ends there, one of FRONT_ENDS. Empty: it is HTTP."""

    @property
    def scheme(self) -> str:
        """Scheme before the address. Empty if other settings decide on the protocol."""
        return "" if self.tls is None else self.protocol or ("https" if self.tls else "http")

    def __str__(self) -> str:
        if self.tls is None:
            return str(self.address)
        said = ((PROXY_PROTOCOL, self.proxy_protocol), (REQUIRED, self.proxy_protocol_required))
        words = [f"{name}={_written(value)}" for name, value in said if value is not None]
        options = f"?{'&'.join(words)}" if words else ""
        joint = "://" if isinstance(self.address, TcpAddress) else "+"
        return f"{self.scheme}{joint}{self.address}{options}"


def parse(text: str) -> Door:
    """Reads what `bind` says of one listener; Refused says what is wrong with it."""
    text = text.strip()
    if "://" in text.partition(",")[2]:  # a comma alone may be one of a path
        raise Refused("expected one address; several are given apart, as in -b ADDRESS -b ADDRESS")
    scheme, _, rest = text.partition(":")
    protocol, plus, place = scheme.lower().partition("+")
    has_scheme = bool(plus) or rest.startswith("//")
    if has_scheme and protocol in ("h2", "h2c"):
        raise Refused("expected http:// or https://: http_protocols says whether HTTP/2 is served there, too")
    if has_scheme and protocol in ABSENT:
        raise Refused(f"this version of tricorn does not speak {ABSENT[protocol]}: expected http:// or https://")
    if not has_scheme or protocol in ("tcp", "unix", "fd"):
        return Door(addresses.parse(text))
    if protocol not in ("http", "https", *FRONT_ENDS) or place not in ("", "unix", "fd"):
        raise Refused(f"expected {EXPECTED}, got {scheme}:{'//' if rest.startswith('//') else ''}")
    where, question, options = rest.partition("?")
    address = _tcp(where, protocol) if not plus else addresses.parse(f"{place}:{where}")
    spoken = protocol if protocol in FRONT_ENDS else ""
    return Door(address, protocol == "https", *_options(options if question else ""), spoken)


def decided(texts: Iterable[str], *, tls: bool, protocol: str = "") -> tuple[Door, ...]:
    """Returns the endpoints of `bind`, each address once. `tls` and `protocol` decide where it has no scheme."""
    doors = map(parse, texts)
    known = [door if door.tls is not None else plain(door.address, tls=tls, protocol=protocol) for door in doors]
    return tuple({door.address: door for door in known}.values())


def plain(address: Address, *, tls: bool, protocol: str) -> Door:
    """Returns the endpoint of an address without a scheme. A front end's protocol is spoken without TLS."""
    return Door(address, tls and not protocol, protocol=protocol)


class Doors(Addresses):
    """Endpoints in the form of the setting `bind`."""

    def read(self, text: str) -> Address:
        return parse(text).address

    def parse(self, raw: object) -> tuple[str, ...]:
        values = Addresses.parse(self, raw)
        seen: dict[Address, tuple[str, Door]] = {}
        for value in values:
            door = parse(value)
            before, known = seen.setdefault(door.address, (value, door))
            if known != door:
                raise Refused(f"{before} and {value} are one address: it has one scheme, and one word for each option")
        return values


def _tcp(where: str, protocol: str) -> Address:
    authority = where.removeprefix("//")
    host, slash, path = authority.partition("/")
    if slash:
        advice = f"; a unix socket is {protocol}+unix:/{path}" if not host else f", as in {protocol}://{host}"
        raise Refused(f"expected {protocol}://HOST:PORT without a path{advice}")
    address = addresses.parse(f"tcp://{host}")
    if host.rpartition("]")[2].rpartition(":")[2] in ("", host):
        # The port of such a URL is 80 or 443, and that of an address without a scheme 8000.
        usual = {"https": 443, "http": 80, "fastcgi": 9000, "scgi": 4000}.get(protocol, 3031)
        raise Refused(f"expected a port, as in {protocol}://{host.rstrip(':')}:{usual}")
    return address


def _options(text: str) -> tuple[str | None, bool | None]:
    found: dict[str, str] = {}
    for option in filter(None, text.split("&")):
        name, equals, value = option.partition("=")
        if name not in OPTIONS or not equals:
            raise Refused(f"expected {' or '.join(OPTIONS.values())} behind the ?, got {option!r}{_meant(name)}")
        if name in found:
            raise Refused(f"{name} is said twice")
        found[name] = value
    mode = _value(PROXY_PROTOCOL, Choice(("off", "v1", "v2", "auto")).parse, found)
    required = _value(REQUIRED, Boolean().parse, found)
    if mode == "off" and required:
        raise Refused(f"{REQUIRED}=on contradicts {PROXY_PROTOCOL}=off: without the protocol there is no header")
    return mode, required


def _value(name: str, read: Callable[[object], T], found: Mapping[str, str]) -> T | None:
    if name not in found:
        return None
    try:
        return read(found[name])
    except Invalid:
        raise Refused(f"expected {OPTIONS[name]}, got {found[name]!r}") from None


def _meant(name: str) -> str:
    return "" if name in OPTIONS else hint(name, OPTIONS, otherwise="")


def _written(value: str | bool) -> str:
    return value if isinstance(value, str) else "on" if value else "off"


PROXY_PROTOCOL, REQUIRED = "proxy_protocol", "proxy_protocol_required"
OPTIONS = {PROXY_PROTOCOL: f"{PROXY_PROTOCOL}=off|v1|v2|auto", REQUIRED: f"{REQUIRED}=on|off"}
ABSENT = {"h3": "HTTP/3"}
FRONT_ENDS = ("uwsgi", "scgi", "fastcgi")
EXPECTED = (
    "http://, https://, http+unix:, https+unix:, http+fd://, https+fd://, tcp://, unix: or fd://, or uwsgi, scgi or "
    "fastcgi in place of http"
)
