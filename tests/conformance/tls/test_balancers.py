"""HAProxy and nginx as clients: connections of theirs to a server that speaks TLS, with sessions and certificates."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conformance.tls.clients import BODY, MUTUAL, WELCOME, Cell, identity
from tests.conformance.tls.world import NAMES, World, serve
from tests.conftest import Pool
from tests.harness.balancers import Running, nginx_around, program
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES, each
from tests.harness.server import free_ports
from tests.harness.wire import Wire

pytestmark = pytest.mark.beyond_reference("it resumes no session")

ALL = os.environ.get("TRICORN_TEST_TLS") == "1"
ALIASES = (*EVERY, *SERVERS_OF_CLASSES) if ALL else ("gthread",)
CELLS = [
    Cell(version, key, how)
    for version in ("1.2", "1.3")
    for key in NAMES
    for how in ("full", "resumed", *(MUTUAL if key == "ecdsa" else ("with",)))
]

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
def test_haproxy(alias: str, pool: Pool, world: World, tmp_path: Path) -> None:
    ports = dict(zip(CELLS, free_ports(len(CELLS)), strict=True))
    sections = []
    for cell, port in ports.items():
        options = f"ssl-min-ver TLSv{cell.version} ssl-max-ver TLSv{cell.version}"
        options += "" if cell.how == "resumed" else " no-ssl-reuse"
        if own := identity(cell, world):
            both = tmp_path / f"{cell.how}.pem"
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
    with Front([program("haproxy"), "-db", "-f", str(file)], ports[CELLS[0]]):
        wrong = []
        for cell, port in ports.items():
            for turn in range(3 if cell.how == "resumed" else 1):
                with Wire(("127.0.0.1", port)) as wire:
                    reply = wire.get("/hello")
                if cell.how not in WELCOME:
                    if reply.status not in (502, 503):
                        wrong.append(f"{cell}: {reply}")
                elif (reply.text, reply.get("X-Version")) != (BODY, f"TLSv{cell.version}"):
                    wrong.append(f"{cell}: {reply}")
                elif cell.how == "resumed" and turn == 2 and reply.get("X-Resumed") != "1":
                    wrong.append(f"{cell}: not resumed")
        assert not wrong


@pytest.mark.parametrize("alias", each(*ALIASES))
def test_nginx(alias: str, pool: Pool, world: World, tmp_path: Path) -> None:
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
                reuse="on" if cell.how == "resumed" else "off",
                own=""
                if own is None
                else f"proxy_ssl_certificate {own.certificate}; proxy_ssl_certificate_key {own.key};",
            )
        )
    file = tmp_path / "nginx.conf"
    file.write_text(nginx_around("\n".join(sections), tmp_path))
    with Front([program("nginx"), "-p", str(tmp_path), "-c", str(file)], ports[CELLS[0]]):
        wrong = []
        for cell, port in ports.items():
            for _ in range(2 if cell.how == "resumed" else 1):
                with Wire(("127.0.0.1", port)) as wire:
                    reply = wire.get("/hello")
                if cell.how in WELCOME and reply.text != BODY:
                    wrong.append(f"{cell}: {reply}")
                # A connection that is refused after the client believes in it (TLS 1.3) is a bad gateway as well.
                if cell.how not in WELCOME and reply.status != 502:
                    wrong.append(f"{cell}: {reply}")
        assert not wrong


def _server(cell: Cell, alias: str, pool: Pool, world: World) -> int:
    settings = world.mutual() if cell.how in MUTUAL else world.settings()
    return serve(pool, alias, "gallery:application", **settings).port
