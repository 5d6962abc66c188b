"""What a Prometheus sees of a server: its metrics, read by the parsers of prometheus-client."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from tests.harness.wire import Address, Wire

if TYPE_CHECKING:
    from typing_extensions import Self

OPEN = ("Accept", "application/openmetrics-text; version=1.0.0")

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(address: Address, *, openmetrics: bool = False) -> Samples:
    """The value of every sample by its name and labels, without the prefix."""
    with Wire(address) as wire:
        reply = wire.get("/metrics", *([OPEN] if openmetrics else []))
    assert reply.status == 200, reply
    kind = reply.get("Content-Type") or ""
    assert kind.startswith("application/openmetrics-text" if openmetrics else "text/plain; version=0.0.4")
    parse: Any = open_families if openmetrics else text_families
    return {
        (sample.name.removeprefix("tricorn_"), tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(reply.body.decode())
        for sample in family.samples
    }


def value(samples: Mapping[Any, float], name: str, **labels: str) -> float:
    """0 if there is no such sample: labels that were not seen yet have none."""
    return samples.get((name, tuple(sorted(labels.items()))), 0.0)


class Watching:
    """Scrapes all the time, from now to the end of the block, and finds every counter that has fallen."""

    def __init__(self, address: Address) -> None:
        self.fallen: list[str] = []
        self.count = 0
        self._address = address
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        before: Samples = {}
        while not self._over.is_set():
            try:
                now = scrape(self._address)
            except OSError:  # the worker that had accepted was killed
                continue
            for (name, labels), old in before.items():
                if name.endswith(("_total", "_count", "_sum", "_bucket")) and now.get((name, labels), 0.0) < old:
                    self.fallen.append(f"{name}{dict(labels)}: {now.get((name, labels))} after {old}")
            before = now
            self.count += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(20)
