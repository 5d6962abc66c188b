"""Programs as clients: each asks for / over TLS, and says what it was answered."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from tests.conformance.tls.world import NAMES, World
from tests.harness import go
from tests.harness.certificates import Issued
from tests.harness.tls import SecureWire, client
from tests.harness.wire import request

How = Literal["full", "resumed", "with", "again", "without", "expired", "revoked", "stranger"]
"""The handshake; or with which certificate of its own a client comes to a server that asks for one: with a right one,
which is verified, or known from a session that is resumed (`again`)."""

ALL = os.environ.get("TRICORN_TEST_TLS") == "1"
"""Every cell, and not a few of each kind."""
REFUSED: dict[How, str] = {
    "without": "it showed no certificate",
    "expired": "its certificate has expired",
    "revoked": "its certificate was revoked",
    "stranger": "its certificate has an unknown issuer",
}
"""What the log says of clients that come so."""
RESUMING: tuple[How, ...] = ("resumed", "again")
MUTUAL: tuple[How, ...] = ("with", "again", *REFUSED)
PATIENCE = 60
"""Seconds for a program."""
GO = Path(__file__).parent / "goclient"


class Cell(NamedTuple):
    version: str
    key: str
    """Of the server's certificate, and of the client's if it has a right one."""
    how: How

    def __str__(self) -> str:
        return f"{self.version}-{self.key}-{self.how}"


CELLS = [
    Cell(version, key, how)
    for version in ("1.2", "1.3")
    for key in NAMES
    for how in ("full", "resumed", *MUTUAL)
    # Who a client is has nothing to do with the server's key: one is enough for those that are refused.
    if ALL or key == "ecdsa" or how not in ("again", *REFUSED)
]


class Answer(NamedTuple):
    body: str | None
    """None: no answer, since there was no handshake."""
    resumed: bool | None = None
    """None: the program does not tell."""
    said: str = ""


Ask = Callable[[int, Cell, World, Path], Answer]


def identity(cell: Cell, world: World) -> Issued | None:
    known = {
        "with": world.client if cell.key == "ecdsa" else world.client_rsa,
        "again": world.client if cell.key == "ecdsa" else world.client_rsa,
        "expired": world.expired,
        "revoked": world.revoked,
        "stranger": world.strangers,
    }
    return known.get(cell.how)


def by_python(port: int, cell: Cell, world: World, directory: Path) -> Answer:
    context = client(world.authority, cell.version, identity=identity(cell, world))
    address = ("127.0.0.1", port)

    def once(session: ssl.SSLSession | None) -> tuple[str, bool, ssl.SSLSession | None]:
        with SecureWire(address, context, name=NAMES[cell.key], session=session) as wire:
            reply = wire.get("/")  # which brings the tickets of TLS 1.3
            assert wire.secure.version() == f"TLSv{cell.version}"
            return reply.text, bool(wire.secure.session_reused), wire.secure.session

    try:
        text, resumed, session = once(None)
        if cell.how in RESUMING:
            text, resumed, _ = once(session)
    except (OSError, AssertionError) as error:  # TLS 1.3: the client believes that it is connected until it reads
        return Answer(None, said=repr(error))
    return Answer(text, resumed)


def by_curl(port: int, cell: Cell, world: World, directory: Path) -> Answer:
    program = _program("curl")
    name = NAMES[cell.key]
    url = f"https://{name}:{port}/"
    command = [program, "-sS", "--max-time", "30", "--cacert", str(world.authority.certificate)]
    command += ["--resolve", f"{name}:{port}:127.0.0.1", f"--tlsv{cell.version}", "--tls-max", cell.version]
    own = identity(cell, world)
    if own is not None:
        command += ["--cert", str(own.certificate), "--key", str(own.key)]
    if cell.how in RESUMING:  # it keeps sessions for as long as it runs
        command += ["-H", "Connection: close", url, "-o", "/dev/null", "--next", *command[1:]]
    done = _run([*command, url])
    return Answer(done.stdout if done.returncode == 0 else None, said=done.stderr)


def by_openssl(port: int, cell: Cell, world: World, directory: Path) -> Answer:
    session = directory / f"{cell}.session"
    command = [_program("openssl"), "s_client", "-connect", f"127.0.0.1:{port}", "-servername", NAMES[cell.key]]
    command += ["-CAfile", str(world.authority.certificate), "-verify_return_error", "-ign_eof"]
    command += [f"-tls{cell.version.replace('.', '_')}"]
    own = identity(cell, world)
    if own is not None:
        command += ["-cert", str(own.certificate), "-key", str(own.key)]
    if cell.how in RESUMING:
        first = _run([*command, "-sess_out", str(session)], CLOSING)
        if not session.exists():
            return Answer(None, False, first.stdout)
        command += ["-sess_in", str(session)]
    done = _run(command, CLOSING)
    # What it says of tickets may follow the answer in the same line.
    _, found, rest = done.stdout.replace("\r", "").partition("\n\n{")
    body = json.dumps(json.JSONDecoder().raw_decode("{" + rest)[0]) if found else None
    return Answer(body, "Reused, TLS" in done.stdout, done.stdout + done.stderr)


CLOSING = request("GET", "/", [("Connection", "close")]).decode()


def by_go(port: int, cell: Cell, world: World, directory: Path) -> Answer:
    command = [go.built(GO, world.authority.directory), "-address", f"127.0.0.1:{port}", "-name", NAMES[cell.key]]
    command += ["-ca", str(world.authority.certificate), "-version", cell.version]
    own = identity(cell, world)
    if own is not None:
        command += ["-cert", str(own.certificate), "-key", str(own.key)]
    done = _run([*command, "-times", "2" if cell.how in RESUMING else "1"])
    if done.returncode != 0:
        return Answer(None, said=done.stderr)
    last = json.loads(done.stdout)[-1]
    if last["Error"]:
        return Answer(None, said=last["Error"])
    assert (last["Version"], last["ALPN"]) == (f"TLS {cell.version}", "http/1.1"), last
    return Answer(last["Body"], last["Resumed"], done.stdout)


def resumes(name: str, cell: Cell) -> bool:
    """Whether this program resumes a session here.

    curl takes no tickets of TLS 1.2 (SSL_OP_NO_TICKET): it resumes what one process of a server keeps.
    """
    return cell.how in RESUMING and (name, cell.version) != ("curl", "1.2")


CLIENTS: dict[str, Ask] = {"python": by_python, "curl": by_curl, "openssl": by_openssl, "go": by_go}
ALERTS: dict[How, str] = {
    "without": "certificate required|bad certificate|handshake failure",
    "expired": "expired",
    "revoked": "revoked",
    "stranger": "unknown certificate authority|unknown ca",
}
"""What a program says of the alert, where it does (Go's)."""


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def _run(command: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=PATIENCE, check=False, errors="replace", env={}
    )
