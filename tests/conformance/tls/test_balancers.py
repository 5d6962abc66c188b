"""HAProxy and nginx as clients: connections of theirs to a server that speaks TLS, with sessions and certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.tls.clients import ALL, CELLS, MUTUAL, REFUSED, RESUMING, Cell, How, identity
from tests.conformance.tls.told import wrong
from tests.conformance.tls.world import NAMES, World, serve
from tests.conftest import Pool
from tests.harness import Server
from tests.harness.balancers import Running, nginx_around, program
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES, each
from tests.harness.server import free_ports
from tests.harness.wire import Reply, Wire

pytestmark = pytest.mark.beyond_reference("it resumes no session")

ALIASES = (*EVERY, *SERVERS_OF_CLASSES) if ALL else ("gthread",)

HAPROXY = """\
global
    stats socket {directory}/stats mode 600 level admin
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    retries 0
{sections}
"""
HAPROXY_CELL = """\
listen {name}
    bind 127.0.0.1:{port}
    http-reuse never
    http-response set-header X-Resumed %[ssl_bc_is_resumed]
    http-response set-header X-Version %[ssl_bc_protocol]
    server one 127.0.0.1:{server} ssl {options} ca-file {ca} verify required verifyhost {host} sni str({host})
"""
NGINX_CELL = """\
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass https://127.0.0.1:{server};
            proxy_ssl_protocols TLSv{version};
            proxy_ssl_name {host};
            proxy_ssl_server_name on;
            proxy_ssl_verify on;
            proxy_ssl_trusted_certificate {ca};
            proxy_ssl_session_reuse {reuse};
            {own}
        }}
    }}
"""


class Front(Running):
    def answers(self) -> bool:
        try:
            self.connect().close()
        except OSError:
            return False
        return True


@pytest.mark.parametrize("alias", each(*ALIASES))
def test_tls_behind_haproxy(alias: str, pool: Pool, world: World, tmp_path: Path) -> None:
    ports = dict(zip(CELLS, free_ports(len(CELLS)), strict=True))
    sections = []
    for cell, port in ports.items():
        options = f"ssl-min-ver TLSv{cell.version} ssl-max-ver TLSv{cell.version}"
        options += "" if cell.how in RESUMING else " no-ssl-reuse"
        if own := identity(cell, world):
            both = tmp_path / f"{cell}.pem"
            both.write_bytes(own.certificate.read_bytes() + own.key.read_bytes())
            options += f" crt {both}"
        sections.append(
            HAPROXY_CELL.format(
                name=cell,
                port=port,
                server=_server(cell, alias, pool, world),
                options=options,
                ca=world.authority.certificate,
                host=NAMES[cell.key],
            )
        )
    file = tmp_path / "haproxy.cfg"
    file.write_text(HAPROXY.format(directory=tmp_path, sections="\n".join(sections)))
    front = Front([program("haproxy"), "-db", "-f", str(file)], ports[CELLS[0]])
    with Reasons(serve(pool, alias, **world.mutual())), front:
        found = []
        for cell, port in ports.items():
            # The session may be resumed from the second connection on, and of TLS 1.3 from one that was read from.
            reply = _ask(port, 3 if cell.how in RESUMING else 1)
            found.append(_judge(cell, alias, reply, world))
            resumed = "1" if cell.how in RESUMING else "0"
            told = (reply.get("X-Version"), reply.get("X-Resumed"))
            if cell.how not in REFUSED and told != (f"TLSv{cell.version}", resumed):
                found.append(f"{cell}: HAProxy tells {told}")
        assert not any(found), found


@pytest.mark.parametrize("alias", each(*ALIASES))
def test_tls_behind_nginx(alias: str, pool: Pool, world: World, tmp_path: Path) -> None:
    ports = dict(zip(CELLS, free_ports(len(CELLS)), strict=True))
    sections = []
    for cell, port in ports.items():
        own = identity(cell, world)
        sections.append(
            NGINX_CELL.format(
                port=port,
                server=_server(cell, alias, pool, world),
                version=cell.version,
                host=NAMES[cell.key],
                ca=world.authority.certificate,
                reuse="on" if cell.how in RESUMING else "off",
                own=""
                if own is None
                else f"proxy_ssl_certificate {own.certificate}; proxy_ssl_certificate_key {own.key};",
            )
        )
    file = tmp_path / "nginx.conf"
    file.write_text(nginx_around("\n".join(sections), tmp_path))
    front = Front([program("nginx"), "-p", str(tmp_path), "-c", str(file)], ports[CELLS[0]])
    with Reasons(serve(pool, alias, **world.mutual())), front:
        found = [
            _judge(cell, alias, _ask(port, 2 if cell.how in RESUMING else 1), world) for cell, port in ports.items()
        ]
        assert not any(found), found


def _server(cell: Cell, alias: str, pool: Pool, world: World) -> int:
    return serve(pool, alias, **(world.mutual() if cell.how in MUTUAL else world.settings())).port


def _ask(port: int, times: int) -> Reply:
    """The last answer."""
    for _ in range(times):
        with Wire(("127.0.0.1", port)) as wire:
            reply = wire.get("/")
    return reply


def _judge(cell: Cell, alias: str, reply: Reply, world: World) -> str:
    """What is wrong; empty: nothing."""
    if cell.how in REFUSED:
        # A connection that is refused after the client believes in it (TLS 1.3) is a bad gateway as well.
        return "" if reply.status in (502, 503) else f"{cell}: {reply}"
    own, resumed = identity(cell, world), cell.how in RESUMING
    found = wrong(alias, reply.text, cell.version, cell.key, own, resumed, world)
    return f"{cell}: {found}" if found else ""


class Reasons:
    """A context manager: each refusal inside it was the server's, for the reason that its cell is about."""

    def __init__(self, server: Server) -> None:
        self._log = server.log
        self._before = {how: len(self._log.matching(self._line(how))) for how in REFUSED}

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        for how, before in self._before.items():
            self._log.wait(self._line(how), count=before + sum(cell.how == how for cell in CELLS))

    @staticmethod
    def _line(how: How) -> str:
        return rf"\[WARNING\] TLS handshake with ip=\S+ failed: {REFUSED[how]}"
