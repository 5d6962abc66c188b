"""Single requests: what became of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """A request that came to its end; seconds from when the counting began."""

    due: float
    """When it was to be sent."""
    begun: float
    """When a client took it: at once, unless all connections were busy."""
    connected: float
    """When the connection was there; `begun` if it was kept from the last request."""
    written: float
    """When all of it was sent; `done` if that never happened. So is `first`."""
    first: float
    """When the first bytes of the answer came."""
    done: float
    """When the answer was complete, or the request failed."""
    ended: int | str
    """The status, or the kind of failure as in `Result.errors`."""
    held: bool
    """It was due while all connections were busy."""
    body: str
    """The first 32 bytes of the content."""

    @property
    def latency(self) -> float:
        return self.done - self.due

    @property
    def late(self) -> float:
        """Seconds by which the request began late."""
        return self.begun - self.due

    @classmethod
    def rows(cls, columns: Mapping[str, Any] | None) -> Sequence[Sample]:
        """Returns samples from the generator's output (crates/tricorn-load/src/samples.rs)."""
        if columns is None:
            return ()
        return [cls(*row) for row in zip(*(columns[name] for name in cls._fields), strict=True)]


def csv(samples: Sequence[Sample]) -> str:
    """A line for each request that was answered, with the columns of hey's `-o csv`; seconds, to four digits.

    A name is looked up before the run, so that DNS is 0.
    """
    lines = ["response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"]
    for one in samples:
        if isinstance(one.ended, int):
            spans = (
                one.latency,
                one.connected - one.begun,
                0.0,
                one.written - one.connected,
                one.first - one.written,
                one.done - one.first,
            )
            lines.append(",".join([*(f"{span:.4f}" for span in spans), str(one.ended), f"{one.due:.4f}"]))
    return "\n".join(lines)
