"""TLS of tests: clients of a server under test, and an HTTPS server for clients under test."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.certificates import Authority, Issued
from tests.harness.deadline import PATIENCE
from tests.harness.frames import Frames
from tests.harness.wire import Address, Wire

if TYPE_CHECKING:
    from typing_extensions import Self

_SERVER = """
import ssl, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(float(self.path.partition("?")[2] or 0))
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"secure")

    def log_message(self, *_):
        pass

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def client(
    authority: Authority, version: str | None = None, *, identity: Issued | None = None, alpn: tuple[str, ...] = ()
) -> ssl.SSLContext:
    """What a client agrees to that trusts this authority. `version`: that one only."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if version is not None:
        context.minimum_version = context.maximum_version = VERSIONS[version]
    if identity is not None:
        context.load_cert_chain(identity.certificate, identity.key)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


def shake_hands(
    sock: socket.socket,
    context: ssl.SSLContext,
    *,
    name: str = "localhost",
    session: ssl.SSLSession | None = None,
    first: bytes = b"",
) -> ssl.SSLSocket:
    """`first` is sent in the clear, before TLS. Raises ssl.SSLError; the socket is closed then."""
    try:
        sock.sendall(first)
        return context.wrap_socket(sock, server_hostname=name, session=session)
    except BaseException:
        sock.close()
        raise


class SecureWire(Wire):
    """A connection over TLS, shaken hands on."""

    def __init__(
        self,
        address: Address,
        context: ssl.SSLContext,
        *,
        name: str = "localhost",
        session: ssl.SSLSession | None = None,
        timeout: float = PATIENCE,
        receive_buffer: int | None = None,
        first: bytes = b"",
    ) -> None:
        """As `shake_hands`."""
        super().__init__(address, timeout=timeout, receive_buffer=receive_buffer)
        self.sock = self.secure = shake_hands(self.sock, context, name=name, session=session, first=first)

    @property
    def serial(self) -> str:
        """Of the server's certificate, as OpenSSL writes it."""
        certificate = self.secure.getpeercert()
        assert certificate is not None
        return str(certificate["serialNumber"]).lstrip("0")


class SecureFrames(Frames, SecureWire):
    """A WebSocket over TLS: `context` is a client's."""


class TlsServer:
    """Answers `secure` to GET; `/?0.5` half a second later. `certificate` is what a client must trust."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="tricorn-tls-"))
        self.certificate = self._directory / "certificate.pem"

    def __enter__(self) -> Self:
        key = self._directory / "key.pem"
        _make(key, self.certificate)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(self.certificate), str(key)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = f"https://localhost:{self._process.stdout.readline().strip()}/"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._directory, ignore_errors=True)


def _make(key: Path, certificate: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
        timeout=30,
    )  # fmt: skip
