"""Typed access to the arguments of a control request. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tricorn.arbiter.policy.commands import Kind
from tricorn.record import Record

MAX_NUMBER = 1 << 31


class Refusal(Exception):
    """The request is not done; one sentence says why."""

    def __init__(self, kind: Kind, sentence: str) -> None:
        super().__init__(sentence)
        self.kind: Kind = kind

    @property
    def answer(self) -> dict[str, object]:
        return {"ok": False, "kind": self.kind, "error": str(self)}


class Arguments(Record):
    """The arguments of a request, checked as they are read. All methods raise Refusal."""

    word: str
    given: Mapping[str, object]
    find: Callable[[str, int], int | None]
    """Looks up the number of the worker with this `slot` or `pid`."""
    everyone: Callable[[], tuple[int, ...]]
    """Lists the numbers of all workers."""

    def flag(self, name: str, *, needed: bool = False) -> bool:
        value = self.given.get(name, None if needed else False)
        if not isinstance(value, bool):
            raise self.refusal(name, "true or false")
        return value

    def number(self, name: str, default: int | None = None, most: int = MAX_NUMBER) -> int:
        value = self.given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise self.refusal(name, "a whole number")
        return value

    def seconds(self, name: str) -> float:
        value = self.given.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise self.refusal(name, "a number of seconds")
        return value

    def worker(self, name: str) -> int:
        """Returns the number of the worker with this `slot` or `pid`."""
        value = self.number(name)
        found = self.find(name, value)
        if found is None:
            raise Refusal("refused", f"There is no worker with the {name} {value}.")
        return found

    def workers(self) -> tuple[int, ...]:
        """Returns the worker with the given `slot`, or all workers."""
        return (self.worker("slot"),) if "slot" in self.given else self.everyone()

    def refusal(self, name: str, wanted: str) -> Refusal:
        return Refusal("refused", f"{self.word} wants {wanted} as {name!r}.")
