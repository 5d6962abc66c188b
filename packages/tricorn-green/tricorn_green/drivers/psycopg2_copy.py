"""COPY and large objects of psycopg2, which it refuses while there is a wait callback: they block, and work.

The callback is taken away for the call, which then waits in C. The classes that have these methods are written in C:
subclasses stand in their places, and are what `psycopg2.connect` makes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tricorn.unpatched import _thread
from tricorn_green.cures.replace import is_changeable
from tricorn_green.drivers.records import Ground

BLOCKS = (
    "psycopg2 (PostgreSQL): {call}() blocks the whole worker while it waits, like COPY and large objects always do in "
    "psycopg2. Use psycopg 3, whose COPY is cooperative; or psycopg2.extras.execute_values instead of COPY FROM, a "
    "named cursor instead of COPY TO, and the SQL functions lo_get, lo_put and lo_from_bytea instead of lobject."
)


def apply(psycopg2: Any, ground: Ground) -> None:
    """Has connections, and cursors without a class of their own, be of the classes that can."""
    plain, extensions = psycopg2._connect, psycopg2.extensions
    if getattr(plain, "__tricorn__", False):
        return
    is_early = _subclasses(extensions.cursor) or _subclasses(extensions.connection)
    calls = _Calls(psycopg2, ground)
    cursor = _cured(extensions.cursor, calls.copying, "copy_from", "copy_to", "copy_expert")
    connection = _cured(extensions.connection, calls.opening, "lobject")
    if not is_early:  # else objects of those subclasses would not be instances of what has this name
        extensions.cursor, extensions.connection = cursor, connection

    def connect(dsn: str, connection_factory: Any = None, **options: Any) -> Any:
        made = plain(dsn, connection_factory=connection_factory or connection, **options)
        if made.cursor_factory is None:
            made.cursor_factory = cursor
        return made

    connect.__tricorn__ = True  # type: ignore[attr-defined]
    psycopg2._connect = connect


def _cured(kind: Any, wrap: Callable[[Any], Any], *names: str) -> Any:
    methods = {name: wrap(getattr(kind, name)) for name in names}
    for each in _subclasses(kind):
        for name, method in methods.items():
            if name not in vars(each):
                setattr(each, name, method)
    of_class = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__slots__": ()}
    return type(kind.__name__, (kind,), {**of_class, **methods})


def _subclasses(kind: Any) -> list[Any]:
    """Yields subclasses in modules that were imported before this one. Some in C are always there."""
    return [each for each in kind.__subclasses__() if is_changeable(each)]


class _Calls:
    """Around the methods that wait in C."""

    def __init__(self, psycopg2: Any, ground: Ground) -> None:
        self._ground = ground
        self._blocking = _Blocking(psycopg2.extensions)
        self._libpq = _Libpq(psycopg2)

    def copying(self, method: Any) -> Any:
        @wraps(method)
        def copy(cursor: Any, *args: Any, **kwargs: Any) -> Any:
            self._say(method)
            connection = cursor.connection
            was = self._libpq.set_blocking(connection, True)
            try:
                with self._blocking:
                    return method(cursor, *args, **kwargs)
            finally:
                if not was:
                    self._libpq.set_blocking(connection, False)

        return copy

    def opening(self, method: Any) -> Any:
        @wraps(method)
        def lobject(connection: Any, *args: Any, **kwargs: Any) -> Any:
            self._say(method)
            self._libpq.set_blocking(connection, True)  # for good: the object is read and written later
            with self._blocking:
                return method(connection, *args, **kwargs)

        return lobject

    def _say(self, method: Any) -> None:
        if self._ground.care.doctor != "off":
            self._ground.say("warning", BLOCKS.format(call=method.__name__))


class _Blocking:
    """There is no wait callback while this is entered, in whatever thread: the callback is not a connection's."""

    def __init__(self, extensions: Any) -> None:
        self._extensions = extensions
        self._lock = _thread.allocate_lock()
        self._entered = 0
        self._callback: Any = None

    def __enter__(self) -> None:
        with self._lock:  # only C is called
            if self._entered == 0:
                self._callback = self._extensions.get_wait_callback()
                self._extensions.set_wait_callback(None)
            self._entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered == 0:
                self._extensions.set_wait_callback(self._callback)


class _Libpq:
    """The functions of libpq that psycopg2 does not offer; connections of green mode do not block in libpq either.

    COPY would keep in memory what the socket does not take, and the functions of large objects fail on it.
    """

    def __init__(self, psycopg2: Any) -> None:
        self._path = psycopg2._psycopg.__file__
        self._library: Any = None

    def set_blocking(self, connection: Any, value: bool) -> bool:
        """Returns whether it was; True where libpq cannot be reached, so that nothing is set back."""
        pointer = getattr(connection, "pgconn_ptr", None)  # since psycopg2 2.8
        library = self._load()
        if not pointer or library is None:
            return True
        was = not library.PQisnonblocking(pointer)
        library.PQsetnonblocking(pointer, int(not value))
        return bool(was)

    def _load(self) -> Any:
        if self._library is None:
            import ctypes

            try:
                library = ctypes.CDLL(self._path)  # finds what this is linked with, too
                library.PQisnonblocking.argtypes = [ctypes.c_void_p]
                library.PQsetnonblocking.argtypes = [ctypes.c_void_p, ctypes.c_int]
            except (AttributeError, OSError):
                return None
            self._library = library
        return self._library
