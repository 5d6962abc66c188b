"""Programs as clients: each asks for /hello over TLS, and says what it was answered."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from tests.conformance.tls.world import NAMES, World
from tests.harness.certificates import Issued
from tests.harness.tls import SecureWire, client
from tests.harness.wire import request

How = Literal["full", "resumed", "with", "without", "expired", "revoked", "stranger"]
"""The handshake; or with which certificate of its own a client comes to a server that asks for one."""

MUTUAL: tuple[How, ...] = ("with", "without", "expired", "revoked", "stranger")
WELCOME: tuple[How, ...] = ("full", "resumed", "with")
BODY = "Hello\n"
PATIENCE = 60
"""Seconds for a program."""


class Cell(NamedTuple):
    version: str
    key: str
    """Of the server's certificate."""
    how: How

    def __str__(self) -> str:
        return f"{self.version}-{self.key}-{self.how}"


CELLS = [
    Cell(version, key, how)
    for version in ("1.2", "1.3")
    for key in NAMES
    for how in (*WELCOME[:2], *(MUTUAL if key == "ecdsa" else ("with",)))
]
"""Who a client is has nothing to do with the server's key: one is enough for those that are refused."""


class Answer(NamedTuple):
    body: str | None
    """None: no answer, since there was no handshake."""
    resumed: bool | None = None
    """None: the program does not tell."""
    said: str = ""


Ask = Callable[[int, Cell, World, Path], Answer]


def identity(cell: Cell, world: World) -> Issued | None:
    known = {
        "with": world.client,
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
            reply = wire.get("/hello")  # which brings the tickets of TLS 1.3
            assert wire.secure.version() == f"TLSv{cell.version}"
            return reply.text, bool(wire.secure.session_reused), wire.secure.session

    try:
        text, resumed, session = once(None)
        if cell.how == "resumed":
            text, resumed, _ = once(session)
    except (OSError, AssertionError) as error:  # TLS 1.3: the client believes that it is connected until it reads
        return Answer(None, said=repr(error))
    return Answer(text, resumed)


def by_curl(port: int, cell: Cell, world: World, directory: Path) -> Answer:
    program = _program("curl")
    name = NAMES[cell.key]
    url = f"https://{name}:{port}/hello"
    command = [program, "-sS", "--max-time", "30", "--cacert", str(world.authority.certificate)]
    command += ["--resolve", f"{name}:{port}:127.0.0.1", f"--tlsv{cell.version}", "--tls-max", cell.version]
    own = identity(cell, world)
    if own is not None:
        command += ["--cert", str(own.certificate), "--key", str(own.key)]
    if cell.how == "resumed":  # it keeps sessions for as long as it runs
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
    if cell.how == "resumed":
        first = _run([*command, "-sess_out", str(session)], CLOSING)
        if not session.exists():
            return Answer(BODY, False, first.stdout)
        command += ["-sess_in", str(session)]
    done = _run(command, CLOSING)
    found = re.search(r"\n\n(Hello\n)", done.stdout)
    return Answer(found[1] if found else None, "Reused, TLS" in done.stdout, done.stdout + done.stderr)


CLOSING = request("GET", "/hello", [("Connection", "close")]).decode()

CLIENTS: dict[str, Ask] = {"python": by_python, "curl": by_curl, "openssl": by_openssl}


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def _run(command: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=PATIENCE, check=False, errors="replace", env={}
    )
