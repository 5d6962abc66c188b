"""`connection.stream` of tornado's requests, without a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tricorn.gateway.tls_session import Session


class StreamView:
    """View of the stream for handlers that ask for the client's address or whether it is connected."""

    def __init__(
        self,
        session: Callable[[], Mapping[str, Any] | None],
        is_over: Callable[[], bool],
        close: Callable[[], object],
    ) -> None:
        """`session`: its facts, if the client speaks TLS."""
        self._session = session
        self._is_over = is_over
        self._close = close

    def closed(self) -> bool:
        """Whether the connection is closed, or another request's."""
        return self._is_over()

    def close(self) -> None:
        self._close()

    def set_nodelay(self, value: bool) -> None:
        """The core sends at once anyway."""

    @property
    def socket(self) -> Session:
        """Socket for `request.get_ssl_certificate`. None without TLS."""
        facts = self._session()
        if facts is None:
            raise AttributeError("The connection is in the clear: it has no certificates.")
        return Session(facts)
