"""connectconformance, the suite of Connect, gRPC and gRPC-Web: its client asks `service.py` by HTTP/1 and HTTP/2, with
and without TLS, with certificates of clients and without.

A WSGI application is not asked: it has no trailers, and `wsgi.input.read(size)` waits for as many bytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SOURCE = HERE / "connectconformance"
PROGRAM = ROOT / "target/connectconformance"
ENVIRONMENT = Path(os.environ["TRICORN_TEST_CONNECT"])
MODULE = "connectrpc.com/conformance"
AT_ONCE = 2
"""Servers, of which each serves the cases of one configuration."""

pytestmark = [
    pytest.mark.beyond_reference("its HTTP/2 is a setting of another name"),
    pytest.mark.timeout(1800),
]


class Asked(NamedTuple):
    """What a server is asked for."""

    config: str
    cases: int
    command: tuple[str, ...]


PYTHON = str(ENVIRONMENT / "bin/python")
TRICORN = (PYTHON, "-m", "tricorn", "--chdir", str(HERE), "-b", "127.0.0.1:{port}", "{tls}")
HTTP2 = ("--http-protocols", "h2,h1", "--http2-cleartext", "prior-knowledge")


def tricorn(*options: str) -> tuple[str, ...]:
    return (*TRICORN, *HTTP2, *options)


ASKED = {
    "asgi-asyncio": Asked("asgi.yaml", 3800, tricorn("-k", "asgi", "--asgi-loop", "asyncio", "service:application")),
    "asgi-uvloop": Asked("asgi.yaml", 3800, tricorn("-k", "asgi", "--asgi-loop", "uvloop", "service:application")),
}


@pytest.fixture(scope="session")
def program() -> Path:
    """Built once, of the versions in `connectconformance/go.mod`."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    command = [go, "build", "-mod=readonly", "-o", str(PROGRAM), f"{MODULE}/cmd/connectconformance"]
    done = subprocess.run(
        command, cwd=SOURCE, env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return PROGRAM


@pytest.fixture(scope="session")
def messages(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `messages`: the suite's own protocol, generated as users of Connect do it."""
    made = tmp_path_factory.mktemp("generated")
    (made / "messages").mkdir()
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", MODULE]
    listed = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=True)
    protocol = Path(listed.stdout.strip()) / "proto"
    where = "import grpc_tools, pathlib; print(pathlib.Path(grpc_tools.__file__).parent / '_proto')"
    known = subprocess.run([PYTHON, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(
        [PYTHON, "-m", "grpc_tools.protoc", "-I", protocol, "-I", known, f"--py_out={made}/messages",
         f"--connectrpc_out={made}/messages", *sorted(protocol.rglob("*.proto"))],
        env={**os.environ, "PATH": f"{ENVIRONMENT}/bin:{os.environ['PATH']}"},
        check=True,
        timeout=120,
    )  # fmt: skip
    return made


@pytest.mark.parametrize("name", ASKED)
def test_connect_conformance(program: Path, messages: Path, name: str) -> None:
    config, cases, command = ASKED[name]
    path = [str(messages), str(ROOT / "python")]
    words = [str(program), "--conf", str(HERE / config), "--mode", "server", "--max-servers", str(AT_ONCE)]
    words += ["--", PYTHON, str(HERE / "serve.py"), *command]
    done = subprocess.run(
        words,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-10_000:]}\n{done.stderr[-5000:]}"
    total = re.search(r"Total cases: (\d+)", done.stdout)
    assert total is not None, done.stdout
    assert int(total[1]) == cases
