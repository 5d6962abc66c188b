"""Datasette over a table that is large enough to be streamed."""

from __future__ import annotations

import sqlite3

from datasette.app import Datasette

ROWS = 50_000

with sqlite3.connect("shop.db") as database:
    database.execute("drop table if exists orders")
    database.execute("create table orders (id integer primary key, customer text, note text)")
    database.executemany(
        "insert into orders values (?, ?, ?)", ((n, f"customer {n % 100}", "as usual " * 5) for n in range(ROWS))
    )

app = Datasette([], immutables=["shop.db"], settings={"max_csv_mb": 0}).app()
