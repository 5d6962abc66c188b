"""The two small examples do what their pages say."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Pool
from tests.harness import WSGI_KINDS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@WSGI_KINDS
def test_hello_example(pool: Pool, worker_class: str) -> None:
    server = pool.get("app:app", chdir=EXAMPLES / "hello", worker_class=worker_class)
    assert server.get("/").body == b"Hello, world!\n"
    assert server.get("/you").body == b"Hello, you!\n"


@WSGI_KINDS
def test_flask_hello(pool: Pool, worker_class: str) -> None:
    server = pool.get("app:app", chdir=EXAMPLES / "flask_hello", worker_class=worker_class, workers=2)
    assert b"Hello from Flask" in server.get("/").body
    assert server.get("/worker").json()["pid"] in server.worker_pids()
    form = ("Content-Type", "application/x-www-form-urlencoded")
    assert server.post("/shout", b"text=louder", form).body == b"LOUDER\n"
    assert server.get("/countdown").body == b"5\n4\n3\n2\n1\n"
    assert server.get("/nowhere").status == 404
