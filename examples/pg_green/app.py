"""Two pages over PostgreSQL, each with a connection per request: as plain as psycopg2 lets one write them.

/sleep     a query that takes a second
/actors    two hundred rows as JSON
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

import psycopg2


def query(statement: str) -> list[tuple[Any, ...]]:
    with closing(psycopg2.connect(os.environ["DATABASE_URL"])) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def sleep() -> str:
    query("SELECT pg_sleep(1.0)")
    return "slept for a second\n"


def actors() -> str:
    rows = query("SELECT actor_id, first_name, last_name FROM actor ORDER BY actor_id")
    return json.dumps([{"id": number, "first_name": first, "last_name": last} for number, first, last in rows])


def index() -> str:
    return "/sleep or /actors\n"


PAGES = {"/": ("text/plain", index), "/sleep": ("text/plain", sleep), "/actors": ("application/json", actors)}


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    kind, page = PAGES.get(environ["PATH_INFO"], (None, None))
    if page is None:
        start_response("404 Not Found", [("Content-Length", "0")])
        return []
    body = page().encode()
    start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]
