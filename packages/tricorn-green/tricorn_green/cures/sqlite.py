"""sqlite3: each connection has a thread of its own, on which SQLite waits for locks and disks.

The module holds a connection to the thread that made it (`check_same_thread`), and so do we: all calls of a connection,
its cursors and its blobs are made by its thread, in order. `interrupt` is made as it stands, since it is for others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tricorn_green import offload as offloading
from tricorn_green.cures.replace import Rules, always, subclass, waiting
from tricorn_green.offload import How

if TYPE_CHECKING:
    from tricorn_green.drivers.records import Ground

CONNECTION = (
    "__call__", "__enter__", "__exit__", "backup", "commit", "create_aggregate", "create_collation", "create_function",
    "create_window_function", "deserialize", "enable_load_extension", "getconfig", "getlimit", "load_extension",
    "rollback", "serialize", "set_authorizer", "set_progress_handler", "set_trace_callback", "setconfig", "setlimit",
)  # fmt: skip
SHORTCUTS = ("execute", "executemany", "executescript")
"""Methods of a connection that make a cursor; one of the original class, whatever `cursor` would make."""
CURSOR = ("__next__", "close", "execute", "executemany", "executescript", "fetchall", "fetchmany", "fetchone")
BLOB = ("__enter__", "__exit__", "__getitem__", "__len__", "__setitem__", "close", "read", "seek", "tell", "write")
SETTERS = ("autocommit", "isolation_level")
"""Attributes that end a transaction when they are set."""
FACTORY_PLACE = 5
"""The argument `factory` of connect()."""


def apply(dbapi2: Any, _: Ground) -> None:
    if getattr(dbapi2.Connection, "__tricorn__", False):
        return
    original, plain_connect = dbapi2.Connection, dbapi2.connect
    makers = _Makers(dbapi2)
    dbapi2.Cursor, dbapi2.Connection = makers.cursor, makers.connection

    def connect(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= FACTORY_PLACE and kwargs.get("factory", original) is original:
            kwargs["factory"] = makers.connection
        return plain_connect(*args, **kwargs)

    connect.__doc__ = plain_connect.__doc__
    dbapi2.connect = connect


class _Makers:
    """The two classes that take the place of the module's."""

    def __init__(self, dbapi2: Any) -> None:
        self._error: type[Exception] = dbapi2.ProgrammingError
        plain_connection, plain_cursor = dbapi2.Connection, dbapi2.Cursor
        of_connection = How("object", owner=self._open)
        of_cursor = How("object", owner=lambda args: self._open((args[0].connection,)))
        self.cursor = subclass(
            plain_cursor,
            always(*CURSOR),
            of_cursor,
            {"__init__": waiting(plain_cursor.__init__, How("object", owner=lambda args: self._open(args[1:])))},
        )
        names = {
            "__init__": waiting(plain_connection.__init__, How("object", owner=lambda args: args[0])),
            "close": self._close(plain_connection.close),
            "cursor": self._cursor(plain_connection.cursor, of_connection),
            **{name: self._shortcut(name, plain_connection.cursor, of_connection) for name in SHORTCUTS},
            **{name: _setter(getattr(plain_connection, name), of_connection) for name in _present(plain_connection)},
        }
        if hasattr(dbapi2, "Blob"):
            names["blobopen"] = self._blob(dbapi2.Blob, plain_connection.blobopen, of_connection)
        self.connection = subclass(plain_connection, always(*CONNECTION), of_connection, names)

    def _open(self, args: Sequence[Any]) -> Any:
        """The connection; its thread is gone when it is closed."""
        if getattr(args[0], "_tricorn_closed", False):
            raise self._error("Cannot operate on a closed database.")
        return args[0]

    def _close(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        how = How("object", owner=lambda args: args[0], name="Connection.close")

        def close(connection: Any) -> None:
            if not getattr(connection, "_tricorn_closed", False):
                offloading.run(how, plain, (connection,), {})
                connection._tricorn_closed = True
                offloading.leave_pin(connection)

        close.__doc__ = plain.__doc__
        return close

    def _cursor(self, plain: Callable[..., Any], how: How) -> Callable[..., Any]:
        def cursor(connection: Any, factory: Any = None) -> Any:
            return offloading.run(how, plain, (connection, self.cursor if factory is None else factory), {})

        cursor.__doc__ = plain.__doc__
        return cursor

    def _shortcut(self, name: str, plain: Callable[..., Any], how: How) -> Callable[..., Any]:
        def on_thread(connection: Any, *args: Any) -> Any:
            made = plain(connection, self.cursor)
            getattr(made, name)(*args)
            return made

        def shortcut(connection: Any, *args: Any) -> Any:
            return offloading.run(how, on_thread, (connection, *args), {})

        shortcut.__name__ = name
        return shortcut

    def _blob(self, kind: type, plain: Callable[..., Any], how: How) -> Callable[..., Any]:
        def blobopen(connection: Any, *args: Any, **kwargs: Any) -> Any:
            rules = Rules({kind: always(*BLOB)}, How("object", owner=lambda _: self._open((connection,))))
            return rules.proxy(offloading.run(how, plain, (connection, *args), kwargs))

        blobopen.__doc__ = plain.__doc__
        return blobopen


def _present(connection: type) -> list[str]:
    return [name for name in SETTERS if hasattr(connection, name)]


def _setter(descriptor: Any, how: How) -> property:
    def put(connection: Any, value: Any) -> None:
        offloading.run(how, descriptor.__set__, (connection, value), {})

    return property(descriptor.__get__, put, doc=descriptor.__doc__)
