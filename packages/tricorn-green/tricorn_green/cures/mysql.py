"""mysqlclient: its connections are derived from one class in C, whose methods wait for the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tricorn_green.cures.replace import always, subclass
from tricorn_green.offload import How

if TYPE_CHECKING:
    from tricorn_green.drivers.records import Ground

METHODS = always(
    "__init__", "autocommit", "change_user", "close", "commit", "discard_result", "dump_debug_info", "kill",
    "next_result", "ping", "query", "read_query_result", "rollback", "select_db", "send_query", "set_character_set",
    "set_server_option", "shutdown", "stat", "store_result",
)  # fmt: skip


def apply(module: Any, _: Ground) -> None:
    """Treats `MySQLdb._mysql`, before `MySQLdb.connections` derives from it."""
    if not getattr(module.connection, "__tricorn__", False):
        module.connection = subclass(module.connection, METHODS, How(serial=True))
