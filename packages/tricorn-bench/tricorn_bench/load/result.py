"""Result of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from tricorn_bench.load.histogram import Histogram
from tricorn_bench.load.sample import Sample

SCHEMA = "tricorn-load/1"


class Result:
    """Seconds and bytes; the figures have the names of `as_json`."""

    def __init__(self, figures: Mapping[str, Any]) -> None:
        if figures.get("schema") != SCHEMA:
            raise ValueError(f"expected a result of the schema {SCHEMA}, got {figures.get('schema')!r}")
        self._figures = dict(figures)

    @classmethod
    def decode(cls, text: bytes | str) -> Result:
        return cls(json.loads(text))

    def as_json(self) -> dict[str, Any]:
        """All but the samples."""
        return {name: value for name, value in self._figures.items() if name != "samples"}

    @cached_property
    def samples(self) -> Sequence[Sample]:
        """A sample for each request that came to its end, in the order of the ends; none without `Plan.samples`."""
        return Sample.rows(self._figures.get("samples"))

    @property
    def left_out(self) -> int:
        """Requests of which no sample is kept, since there was no room for more."""
        return int(self._figures.get("samples", {}).get("left_out", 0))

    @cached_property
    def histogram(self) -> Histogram:
        return Histogram.decode(self._figures["histogram"])

    @property
    def seconds(self) -> float:
        return float(self._figures["seconds"])

    @property
    def sent(self) -> int:
        return int(self._figures["sent"])

    @property
    def answered(self) -> int:
        return int(self._figures["answered"])

    @property
    def rate(self) -> float:
        """Answers per second."""
        return float(self._figures["rate"])

    @property
    def latency(self) -> Mapping[str, float]:
        """`min`, `mean`, `p50` … `max`; empty if nothing was answered."""
        latency: Mapping[str, float] = self._figures["latency"]
        return latency

    @property
    def statuses(self) -> Mapping[int, int]:
        return {int(status): count for status, count in self._figures["statuses"].items()}

    @property
    def errors(self) -> Mapping[str, int]:
        """Requests without an answer, by the kind of failure."""
        errors: Mapping[str, int] = self._figures["errors"]
        return errors

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    @property
    def http2_errors(self) -> Mapping[str, int]:
        """Errors that the server sent over HTTP/2, and rules that it broke, with their counts."""
        errors: Mapping[str, int] = self._figures.get("http2_errors", {})
        return errors

    @property
    def tls(self) -> Mapping[str, Any] | None:
        """Handshakes `full` and `resumed` (`count`, `latency`), what was agreed, `reasons` of failures."""
        tls: Mapping[str, Any] | None = self._figures.get("tls")
        return tls

    @property
    def generator(self) -> Mapping[str, Any]:
        generator: Mapping[str, Any] = self._figures["generator"]
        return generator

    def __getitem__(self, name: str) -> Any:
        return self._figures[name]
