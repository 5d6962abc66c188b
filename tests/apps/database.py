"""An application with a connection to PostgreSQL per request, as one writes it who never heard of greenlets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import psycopg2

DSN = os.environ["TEST_DSN"]
SECONDS = os.environ.get("TEST_SECONDS", "1")


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    connection = psycopg2.connect(DSN)
    try:
        cursor = connection.cursor()
        cursor.execute("SELECT pg_sleep(%s)", (SECONDS,))
    finally:
        connection.close()
    start_response("200 OK", [("Content-Length", "4")])
    return [b"done"]
