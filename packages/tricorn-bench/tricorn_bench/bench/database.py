"""Counter of a database's connections during a measurement: `--db DSN`, PostgreSQL."""

from __future__ import annotations

from typing import Any

from tricorn_bench.bench.errors import BenchError

_COUNT = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"


class Watch:
    """A connection of its own, which it does not count. Raises BenchError if there is none to be had."""

    def __init__(self, dsn: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise BenchError("--db needs psycopg, which is not installed: pip install 'psycopg[binary]'.") from None
        self._failure: type[Exception] = psycopg.Error
        try:
            self._connection: Any = psycopg.connect(dsn, autocommit=True, connect_timeout=5)
            self.limit = int(self._ask("show max_connections"))
        except psycopg.Error as error:
            reason = str(error).strip().splitlines()[0]
            raise BenchError(f"Could not connect to the database of --db: {reason}") from None

    def count(self) -> int | None:
        """Counts connections; None when the database does not answer: it may be the one that is overloaded."""
        try:
            return int(self._ask(_COUNT))
        except self._failure:
            return None

    def close(self) -> None:
        self._connection.close()

    def _ask(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]
