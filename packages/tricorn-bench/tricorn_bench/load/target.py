"""Target of requests: a URL, also of a unix socket.

http://HOST[:PORT][/PATH]   HOST:PORT[/PATH]   http+unix://%2Frun%2Fapp.sock[/PATH]   unix:/run/app.sock[:/PATH]
https://HOST[:PORT][/PATH]                      https+unix://%2Frun%2Fapp.sock[/PATH]
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from tricorn.config import addresses
from tricorn.config.addresses import TcpAddress, UnixAddress
from tricorn.config.validators import Refused
from tricorn.record import Record
from tricorn_bench.load.errors import LoadError

HTTP_PORT, HTTPS_PORT = 80, 443
_SECURE = ("https", "wss", "https+unix", "unix+https")


class Target(Record):
    """A URL, and how many of the requests are for it in comparison with the others."""

    url: str
    weight: float = 1.0
    proxy: str | None = None
    """HOST:PORT: it is asked for the whole URL (RFC 9112, section 3.2.2)."""
    name: str | None = None
    """Server name for TLS in place of the URL's host."""

    @property
    def is_secure(self) -> bool:
        """There is TLS."""
        return is_secure(self.url)

    @property
    def server_name(self) -> str | None:
        """Server name for TLS; None without TLS."""
        if not self.is_secure:
            return None
        address = _split(self.url)[0]
        return self.name or ("localhost" if isinstance(address, UnixAddress) else address.host)

    @property
    def address(self) -> TcpAddress | UnixAddress:
        """Address to connect to."""
        return _split(self.proxy or self.url)[0]

    @property
    def host(self) -> str:
        """The field Host."""
        address = _split(self.url)[0]
        if isinstance(address, UnixAddress):
            return self.name or "localhost"
        usual = HTTPS_PORT if self.is_secure else HTTP_PORT
        return str(address) if address.port != usual else str(address).rpartition(":")[0]

    @property
    def path(self) -> str:
        """Path and query, percent-encoded where necessary."""
        path = quote(_split(self.url)[1], safe="/?&=%:@!$'()*+,;~[]|#").partition("#")[0]
        return path if self.proxy is None else f"http://{self.host}{path}"


def is_secure(url: str) -> bool:
    scheme, found, _ = url.strip().partition("://")
    return bool(found) and scheme.lower() in _SECURE


def on_socket(url: str, path: str) -> str:
    """The URL of the same resource on the unix socket at `path`."""
    rest = _split(url)[1]
    return f"https+unix://{quote(path, safe='')}{rest}" if is_secure(url) else f"unix:{path}:{rest}"


def named(field: str) -> str:
    """The name in a field Host, without its port."""
    host, colon, port = field.rpartition(":")
    return (host if colon and port.isdigit() else field).strip("[]")


def _split(url: str) -> tuple[TcpAddress | UnixAddress, str]:
    try:
        return _read(url.strip())
    except Refused as error:
        raise LoadError(f"{url!r} is not a URL that can be loaded: {error}.") from None


def _read(url: str) -> tuple[TcpAddress | UnixAddress, str]:
    scheme, found, rest = url.partition("://")
    if url.startswith("unix:"):
        socket, _, path = url.removeprefix("unix:").removeprefix("//").partition(":")
        return _unix(socket), path or "/"
    if found and scheme.lower() in ("http+unix", "unix+http", "https+unix", "unix+https"):
        socket, slash, path = rest.partition("/")
        return _unix(unquote(socket)), slash + path or "/"
    if found and scheme.lower() not in ("http", "ws", "https", "wss"):
        raise Refused(f"expected http://, https://, http+unix:// or unix:, got {scheme}://")
    rest = rest if found else url
    end = min((rest.find(letter) for letter in "/?#" if letter in rest), default=len(rest))
    authority, path = rest[:end].rpartition("@")[2], rest[end:]
    if not authority:
        raise Refused("expected a host, as in http://127.0.0.1:8000/")
    has_port = authority.rpartition("]")[2].count(":") == 1
    address = addresses.parse(authority if has_port else f"{authority}:{HTTPS_PORT if is_secure(url) else HTTP_PORT}")
    if not isinstance(address, TcpAddress):
        raise Refused("expected a host, as in http://127.0.0.1:8000/")
    host = addresses.DEFAULT_HOST if address.host == "0.0.0.0" else address.host
    return TcpAddress(host, address.port), path if path.startswith("/") else f"/{path}"


def _unix(path: str) -> UnixAddress:
    address = addresses.parse(f"unix:{path}")
    assert isinstance(address, UnixAddress)
    return address
