"""Formats stall records: the line of the log, and the sentences it consists of. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tricorn.record import Record
from tricorn.workers.pools import BY_NAME
from tricorn.workers.stall import Stall


class Sums(Record):
    count: int = 0
    seconds: float = 0.0
    request_seconds: float = 0.0

    def plus(self, seconds: float, request_seconds: float, count: int = 1) -> Sums:
        return Sums(self.count + count, self.seconds + seconds, self.request_seconds + request_seconds)

    def and_more(self, other: Sums) -> Sums:
        return self.plus(other.seconds, other.request_seconds, other.count)

    @property
    def times(self) -> str:
        return "once" if self.count == 1 else f"{self.count} times"

    def as_json(self) -> dict[str, float]:
        rounded = round(self.seconds, 3), round(self.request_seconds, 3)
        return {"count": self.count, "seconds": rounded[0], "request_seconds": rounded[1]}


def line(record: Mapping[str, Any], before: Sums, *, missing: str = "") -> str:
    """Formats a record. `before`: the sum of stalls since the last report; `missing`: what the doctor cannot read."""
    # Requests that wait for a pool are on no thread whose time could be split.
    of_time = "" if record["pool"] and record["waiting"] else f": {shares(record)}"
    texts = [_head(record), record["sentence"], f"{record['verdict']}{of_time}."]
    if library := library_of(record):
        texts.append(f"Library: {library}.")
    if source := record["source"]:
        texts.append(f"Code: {source}{'' if source.endswith('.') else '.'}")
    if record["waiting"]:
        texts.append(f"So far: {record['request_seconds']:.1f} request-seconds.")
    elif record["delayed"]:
        others = "1 other request" if record["delayed"] == 1 else f"{record['delayed']} other requests"
        texts.append(f"It delayed {others} ({record['request_seconds']:.1f} request-seconds).")
    if record["request"] and record["verdict"] != "SLOW_REQUEST":
        texts.append(f"{'Request' if record['sure'] else 'Most recent request'}: {record['request']}.")
    if before.count:
        cost = f"{before.seconds:.1f} s, {before.request_seconds:.1f} request-seconds"
        texts.append(f"Since the last report: {before.times}, {cost}.")
    if missing:
        texts.append(f"Not available: {missing}")
    texts.append(f"Fix: {record['cure']} ({record['link']})")
    return " ".join(filter(None, texts))


def _head(record: Mapping[str, Any]) -> str:
    worker, length = f"worker (pid:{record['pid']})", f"{record['duration']:.2f} s"
    match record["verdict"]:
        case "POOL_WAIT" if record["waiting"]:
            have = "have been" if record["ongoing"] else "were"
            return f"Requests of {worker}, {record['class']}, {have} waiting for a pool for {length}."
        case "SATURATED":
            has = "has been" if record["ongoing"] else "was"
            return f"The {worker}, {record['class']}, {has} saturated for {length}."
        case "SLOW_REQUEST":
            what = record["request"] or "A request"
            has = f"has run for {length}" if record["ongoing"] else f"took {length}"
            return f"{what} {has} in {worker}, {record['class']}."
    is_was = "is" if record["ongoing"] else "was"
    return f"The event loop of {worker} {is_was} blocked for {length} by one call."


def sentence_of(stall: Stall) -> str:
    """Describes a stall: in the monitor's words, unless the table of pools or the figures say it better."""
    wait = stall.wait
    if stall.verdict == "SATURATED":
        return _saturated(stall)
    if not wait.pool:
        return stall.sentence
    pool = BY_NAME.get(wait.pool)
    title, what = (wait.pool, "a free slot") if pool is None else (pool.title, pool.what)
    size = f", which has {wait.size}" if wait.size else ""
    site = f" ({wait.site})" if wait.site else ""
    place = f", from {stall.place.file}:{stall.place.line} in {stall.place.function}" if stall.place.file else ""
    if not wait.waiting:
        return f"Waiting for {what} from {title}{size}{site}{place}."
    oldest = f"; the oldest request is {wait.oldest:.1f} s old" if wait.oldest else ""
    count = f"{wait.waiting} of {wait.in_flight} requests in flight are waiting"
    return f"{count} for {what} from {title}{size}{site}{place}{oldest}."


def _saturated(stall: Stall) -> str:
    wait = stall.wait
    if wait.oldest:
        threads = "its thread was" if wait.in_flight <= 1 else f"all {wait.in_flight} threads were"
        return (
            f"In every sample {threads} busy, and up to {wait.waiting} more requests were waiting, the oldest for "
            f"{wait.oldest:.1f} s; the process used {wait.process:.2f} CPUs."
        )
    return (
        f"Its loop was busy with many short callbacks, and up to {wait.waiting} requests were waiting for their turn; "
        f"the process used {wait.process:.2f} CPUs."
    )


def shares(record: Mapping[str, Any]) -> str:
    named = {"blocked": "blocked", "computed": "on CPU", "queued": "waiting for CPU"}
    return ", ".join(f"{word} {record[name] * 100:.0f} %" for name, word in named.items())


def library_of(record: Mapping[str, Any]) -> str:
    """`librdkafka 2.16.0 of confluent-kafka 2.16.1`."""
    name = " ".join(filter(None, (record["library"], record["library_version"])))
    package = record["package"]
    if package is None:
        return name
    owner = f"{package['name']} {package['version']}"
    return f"{name} of {owner}" if name else owner
