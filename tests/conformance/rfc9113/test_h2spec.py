"""h2spec, which is a client that breaks the rules of RFC 9113 and RFC 7541 one by one, against every worker class.

Its requests go to an application that reads the whole body: one that answers early would hide what comes after.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import Pool
from tests.harness import Server
from tests.harness.certificates import Authority
from tests.harness.classes import ALL_CLASSES

SOURCE = Path(__file__).parent / "h2spec"
PROGRAM = Path(__file__).resolve().parents[3] / "target/h2spec"
COUNT = 146
"""Cases of version 2.2.1, the strict ones included."""

pytestmark = [
    pytest.mark.beyond_reference("its HTTP/2 is a setting of another name"),
    pytest.mark.timeout(600),  # the first one downloads and compiles
]


@pytest.fixture(scope="module")
def program() -> str:
    """Built once, of the versions in `h2spec/go.mod`."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    build = [go, "build", "-mod=readonly", "-o", str(PROGRAM), "github.com/summerwind/h2spec/cmd/h2spec"]
    done = subprocess.run(
        build, cwd=SOURCE, env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, text=True, check=False
    )
    if re.search("dial tcp|no such host|module lookup disabled", done.stderr):
        pytest.skip("h2spec is not installed")
    assert done.returncode == 0, done.stderr
    return str(PROGRAM)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["cleartext", "tls"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@ALL_CLASSES
def test_h2spec(program: str, pool: Pool, authority: Authority, worker_class: str, transport: str) -> None:
    server, options = serving(pool, authority, worker_class, transport)
    report = server.directory / "report.xml"
    command = [program, "--strict", "--port", str(server.port), "--path", "/body", "--junit-report", str(report)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300, check=False)
    passed, failed = judged(report)
    assert not failed, f"{failed}\n{done.stdout[-5000:]}\n{server.log.text[-2000:]}"
    assert passed == COUNT, done.stdout[-2000:]


def serving(pool: Pool, authority: Authority, worker_class: str, transport: str) -> tuple[Server, list[str]]:
    """A server, and the options that h2spec needs for it."""
    if transport == "cleartext":
        return pool.get(worker_class=worker_class, http_protocols="h2,h1", http2_cleartext="prior-knowledge"), []
    pair = authority.issue("server").pair
    return pool.get(worker_class=worker_class, http_protocols="h2,h1", certificate=pair), ["--tls", "--insecure"]


def judged(report: Path) -> tuple[int, list[str]]:
    """How many cases passed, and the names of those that did not."""
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failed = [f"{case.get('package')}: {case.get('classname')}" for case in cases if len(case)]
    return len(cases) - len(failed), failed
