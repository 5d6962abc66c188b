"""oracledb: in thick mode Oracle's client waits in C. Thin mode, which is cooperative, is left as it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from tricorn_green.cures.replace import always, patch
from tricorn_green.offload import How

if TYPE_CHECKING:
    from tricorn_green.drivers.records import Ground

CONNECTION = always(
    "__init__", "begin", "cancel_sessionless_transaction", "changepassword", "close", "commit", "ping", "prepare",
    "rollback", "shutdown", "startup", "tpc_begin", "tpc_commit", "tpc_end", "tpc_prepare", "tpc_rollback",
)  # fmt: skip
CURSOR = always(
    "__next__", "callfunc", "callproc", "close", "execute", "executemany", "fetchall", "fetchmany", "fetchone", "parse",
    "scroll",
)  # fmt: skip


def apply(oracledb: Any, ground: Ground) -> None:
    plain = oracledb.init_oracle_client
    if getattr(plain, "__tricorn__", False):
        return

    @wraps(plain)
    def init_oracle_client(*args: Any, **kwargs: Any) -> Any:
        result = plain(*args, **kwargs)
        patch(oracledb.Connection, CONNECTION, How(serial=True))
        patch(oracledb.Cursor, CURSOR, How(serial=True, owner=_connection))
        return result

    init_oracle_client.__tricorn__ = True  # type: ignore[attr-defined]
    oracledb.init_oracle_client = init_oracle_client


def _connection(args: Sequence[Any]) -> Any:
    return args[0].connection
