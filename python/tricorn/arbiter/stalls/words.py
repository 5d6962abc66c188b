"""The line of the log, made of a record. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tricorn.record import Record


class Sums(Record):
    count: int = 0
    seconds: float = 0.0
    request_seconds: float = 0.0

    def plus(self, seconds: float, request_seconds: float, count: int = 1) -> Sums:
        return Sums(self.count + count, self.seconds + seconds, self.request_seconds + request_seconds)

    def and_more(self, other: Sums) -> Sums:
        return self.plus(other.seconds, other.request_seconds, other.count)

    def as_json(self) -> dict[str, float]:
        rounded = round(self.seconds, 3), round(self.request_seconds, 3)
        return {"count": self.count, "seconds": rounded[0], "request_seconds": rounded[1]}


def line(record: Mapping[str, Any], before: Sums) -> str:
    """`before` is what came since this was told last."""
    is_was = "is" if record["ongoing"] else "was"
    texts = [
        f"The event loop of worker (pid:{record['pid']}) {is_was} held up for {record['duration']:.2f} s by one call.",
        record["sentence"],
        f"{record['verdict']}: {shares(record)}.",
    ]
    if library := library_of(record):
        texts.append(f"The library: {library}.")
    if source := record["source"]:
        texts.append(f"The line: {source}{'' if source.endswith('.') else '.'}")
    if record["delayed"]:
        cost = f"{record['request_seconds']:.1f} request-seconds"
        texts.append(f"Other requests at that time: {record['delayed']} ({cost}).")
    if record["request"]:
        texts.append(f"{'The request' if record['sure'] else 'The last to begin'}: {record['request']}.")
    if before.count:
        cost = f"{before.seconds:.1f} s, {before.request_seconds:.1f} request-seconds"
        texts.append(f"Since this was told last: {before.count} times, {cost}.")
    texts.append(f"Cure: {record['cure']} ({record['link']})")
    return " ".join(filter(None, texts))


def shares(record: Mapping[str, Any]) -> str:
    named = {"blocked": "blocked", "computed": "computed", "queued": "wanted a processor"}
    return ", ".join(f"{word} {record[name] * 100:.0f} %" for name, word in named.items())


def library_of(record: Mapping[str, Any]) -> str:
    """`librdkafka 2.16.0 of confluent-kafka 2.16.1`."""
    name = " ".join(filter(None, (record["library"], record["library_version"])))
    package = record["package"]
    if package is None:
        return name
    owner = f"{package['name']} {package['version']}"
    return f"{name} of {owner}" if name else owner
