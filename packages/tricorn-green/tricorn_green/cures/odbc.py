"""pyodbc: its classes are final and their objects made in C, so that proxies stand around them."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from tricorn_green import offload as offloading
from tricorn_green.cures.replace import Rules, always
from tricorn_green.offload import How

if TYPE_CHECKING:
    from tricorn_green.drivers.records import Ground

CONNECTION = always("close", "commit", "cursor", "execute", "getinfo", "rollback", "set_attr", "__exit__")
CURSOR = always(
    "callproc", "close", "columns", "commit", "execute", "executemany", "fetchall", "fetchmany", "fetchone", "fetchval",
    "foreignKeys", "getTypeInfo", "nextset", "primaryKeys", "procedureColumns", "procedures", "rollback",
    "rowIdColumns", "rowVerColumns", "skip", "statistics", "tables", "__next__", "__exit__",
)  # fmt: skip


def apply(pyodbc: Any, _: Ground) -> None:
    connect = pyodbc.connect
    if getattr(connect, "__tricorn__", False):
        return
    rules = Rules({pyodbc.Connection: CONNECTION, pyodbc.Cursor: CURSOR}, How(serial=True))
    how = How(name="pyodbc.connect")

    @wraps(connect)
    def connected(*args: Any, **kwargs: Any) -> Any:
        return rules.proxy(offloading.run(how, connect, args, kwargs))

    connected.__tricorn__ = True  # type: ignore[attr-defined]
    pyodbc.connect = connected
