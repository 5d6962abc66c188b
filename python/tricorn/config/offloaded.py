"""The kind of the setting `offload`: names of functions and methods, and which threads may call them."""

from __future__ import annotations

from tricorn.config.validators import Refused, TextList
from tricorn.record import Record
from tricorn.spelling import hint

AFFINITIES = ("any", "object", "process")


class OffloadTargets(Record):
    metavar: str = "TARGET"

    def parse(self, raw: object) -> tuple[str, ...]:
        targets = TextList().parse(raw)
        for target in targets:
            place, at, affinity = target.partition("@")
            module, colon, names = place.partition(":")
            parts = [*module.split("."), *names.split(".")]
            if not colon or names.count(".") > 1 or not all(part.isidentifier() for part in parts):
                raise Refused(f"expected package.module:function or package.module:Class.method, got {target!r}")
            if at and affinity not in AFFINITIES:
                raise Refused(
                    f"expected @{', @'.join(AFFINITIES)} at the end of {target!r}"
                    f"{hint(affinity, AFFINITIES, '@{}', otherwise='')}"
                )
        return targets
