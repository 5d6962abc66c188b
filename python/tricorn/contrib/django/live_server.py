"""LiveServerTestCase on tricorn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.db import connections
from django.test.testcases import LiveServerThread as DjangosThread

from tricorn.testing.in_process import Embedded, listen

THREADS = 4


class LiveServerThread(DjangosThread):  # type: ignore[misc]  # Django has no types
    """Thread class for `LiveServerTestCase.server_thread_class`: Django's handlers on a server in this process."""

    def _create_server(self, connections_override: Mapping[str, Any] | None = None) -> LiveServer:
        return LiveServer(listen(self.host, self.port), connections_override or {})


class LiveServer:
    """Server with the part of `socketserver`'s interface that Django's thread uses."""

    def __init__(self, listener: Any, shared: Mapping[str, Any]) -> None:
        self._listener = listener
        self._shared = shared
        self._embedded: Embedded | None = None
        self._over = threading.Event()
        self.server_address = listener.getsockname()

    def set_app(self, handler: Callable[..., Any]) -> None:
        self._embedded = Embedded(Handler(handler, self._shared), self._listener, threads=THREADS)

    def serve_forever(self) -> None:
        """Waits for the end. The threads of the core serve, not Django's."""
        self._over.wait()

    def shutdown(self) -> None:
        self._over.set()

    def server_close(self) -> None:
        if self._embedded is None:
            self._listener.close()
        else:
            self._embedded.stop()


class Handler:
    """Calls Django with the connections that the test shares, and leaves no other one open.

    Connections are a thread's. Threads of the core live longer than a request, and a test database that has connections
    cannot be destroyed.
    """

    def __init__(self, handler: Callable[..., Any], shared: Mapping[str, Any]) -> None:
        self._handler = handler
        self._shared = shared

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        for alias, connection in self._shared.items():
            connections[alias] = connection
        try:
            return Response(self._handler(environ, start_response))
        except BaseException:
            connections.close_all()
            raise


class Response:
    """Closes the connections of its thread when it is closed itself."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._response)

    def close(self) -> None:
        try:
            self._response.close()
        finally:
            connections.close_all()
