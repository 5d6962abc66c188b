"""What is locked is asked about in one request, and no answer is no verdict."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from scripts import audit

CRATES = """
[[package]]
name = "httparse"
version = "1.10.1"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "00"

[[package]]
name = "tricorn-io"
version = "0.1.0"
dependencies = [
 "libc",
]
"""

REQUIREMENTS = """
# a comment
django==5.2.19 ; python_full_version < '3.12'
psycopg[binary]==3.3.9
pytest>=8
"""


def test_crates_of_the_workspace_are_not_asked_about() -> None:
    assert audit.locked_crates(CRATES) == [("crates.io", "httparse", "1.10.1")]


def test_a_requirement_is_asked_about_in_its_pinned_version() -> None:
    assert audit.pinned(REQUIREMENTS) == [("PyPI", "django", "5.2.19"), ("PyPI", "psycopg", "3.3.9")]


def test_the_locks_of_this_repository_are_read() -> None:
    packages = audit.everything()
    names = {(package.ecosystem, package.name) for package in packages}
    assert {("crates.io", "httparse"), ("PyPI", "maturin"), ("PyPI", "pytest"), ("PyPI", "mypy")} <= names
    assert len([each for each in packages if each.ecosystem == "crates.io"]) > 50


Answer = Callable[[dict[str, Any]], bytes]


@contextmanager
def database(answer: Answer) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/querybatch"
            body = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def about(names: dict[str, str]) -> Answer:
    """A database that knows one advisory for each of these packages."""

    def answer(asked: dict[str, Any]) -> bytes:
        packages = [query["package"]["name"] for query in asked["queries"]]
        results = [{"vulns": [{"id": names[name]}]} if name in names else {} for name in packages]
        return json.dumps({"results": results}).encode()

    return answer


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (about({}), 0, "locked versions, no known vulnerability"),
        (about({"httparse": "RUSTSEC-2020-0001"}), 1, r"httparse 1.10.1 (crates.io): "),
        (about({"flask": "PYSEC-1", "httparse": "RUSTSEC-2"}), 1, "/vulnerability/PYSEC-1"),
        (lambda _: b"<html>captive portal</html>", 75, "is unknown"),
        (lambda _: b'{"results": [{}]}', 75, "1 answers to "),
    ],
)
def test_what_the_database_says(
    answer: Answer, status: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["audit"])
    with database(answer) as address:
        monkeypatch.setattr(audit, "DATABASE", address)
        assert audit.main() == status
    assert said in capsys.readouterr().out


def test_a_database_that_does_not_answer_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["audit", "--quick"])
    with database(about({})) as address:
        monkeypatch.setattr(audit, "DATABASE", address)
    assert audit.main() == 75, "its port is closed by now"
    assert "cannot be asked from here" in capsys.readouterr().out


def test_a_finding_that_does_not_concern_us_is_accepted_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["audit"])
    monkeypatch.setattr(audit, "ACCEPTED", {"RUSTSEC-1": "the function is never called"})
    with database(about({"httparse": "RUSTSEC-1"})) as address:
        monkeypatch.setattr(audit, "DATABASE", address)
        assert audit.main() == 0
