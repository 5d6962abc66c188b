"""An EventSource as browsers have it: it connects again when a stream has ended, with the last id that it has seen."""

from __future__ import annotations

from collections.abc import Iterator

import httpx


class EventSource:
    """Raises what httpx does for a stream that breaks off: only one that ends properly is followed by another."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(timeout=60)
        self._url = url
        self.last = ""
        self.streams = 0

    def take(self, count: int) -> list[str]:
        """The ids of so many events; the connection is closed behind them."""
        events = self.events()
        try:
            return [next(events) for _ in range(count)]
        finally:
            events.close()  # type: ignore[attr-defined]

    def events(self) -> Iterator[str]:
        """The ids of events, of one stream after another."""
        while True:
            fields = {"Accept": "text/event-stream", **({"Last-Event-ID": self.last} if self.last else {})}
            self.streams += 1
            with self._client.stream("GET", self._url, headers=fields) as response:
                assert response.status_code == 200, response.status_code
                for line in response.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "id":
                        self.last = value
                        yield value
