"""What workers have seen while a profile was taken, as JSON has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tricorn.arbiter.control import slow
from tricorn.arbiter.control.words import Refusal
from tricorn.arbiter.worker_handle import PROFILES

if TYPE_CHECKING:
    from tricorn.arbiter.worker_handle import WorkerHandle
    from tricorn.config.config import Config

Json = dict[str, object]


def check(config: Config) -> None:
    """Raises Refusal if no worker has a sampler."""
    if config.doctor == "off" or config.profile_after == 0:
        raise Refusal("refused", "The workers have no sampler (doctor = off, or profile_after = 0).")


def answer(handles: Mapping[int, WorkerHandle], nrs: Sequence[int]) -> Json:
    """`missing`: slots of workers that have told nothing; None: of one that is gone, with what it had seen."""
    workers: list[Json] = []
    missing: list[int | None] = []
    for nr in nrs:
        handle = handles.get(nr)
        told = None if handle is None else slow.read(handle.told_profile()[:PROFILES])
        if handle is None or told is None:
            missing.append(None if handle is None else handle.worker.slot)
            continue
        workers.append({"slot": handle.worker.slot, "pid": handle.pid, "class": handle.kind, "profile": told})
    return {"workers": workers, "missing": missing}
