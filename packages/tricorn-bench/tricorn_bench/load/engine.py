"""The generator, which is native: threads of its own that never meet the GIL."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tricorn import _core
from tricorn_bench.load.errors import Interrupted, LoadError
from tricorn_bench.load.plan import Plan
from tricorn_bench.load.result import Result

Progress = Mapping[str, Any]
"""`seconds`, `sent`, `answered`, `failed`, `late`, `connections`; `rate` is since the last one, `latency` of all."""


def run(plan: Plan, progress: Callable[[Progress], bool | None] | None = None) -> Result:
    """Sends what is planned, and returns when all is answered or the time is over.

    `progress` is called about once a second; False ends the run. In the main thread SIGINT ends it, too: `Interrupted`
    has what was measured until then. Raises LoadError where no load can be sent, with a sentence that says why.
    """

    def tick(text: bytes) -> bool:
        return progress is None or progress(json.loads(text)) is not False

    try:
        return Result.decode(_core.load(plan.encode(), tick))
    except ValueError as error:
        raise LoadError(_sentence(str(error))) from None
    except KeyboardInterrupt as error:
        outcome = getattr(error, "outcome", None)
        raise Interrupted(Result.decode(outcome) if outcome else None) from None


def _sentence(reason: str) -> str:
    return reason if reason.endswith((".", "?")) else f"{reason}."
