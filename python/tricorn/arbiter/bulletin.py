"""What the arbiter knows of the server, for workers that are asked for `/status`: written when that has changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tricorn.unpatched import time

if TYPE_CHECKING:
    from tricorn.arbiter.effects import Effects
    from tricorn.arbiter.policy.state import State

SECOND = 1_000_000_000


class Bulletin:
    """It lies behind the ledger, in memory that workers read (`scoreboard/bulletin.rs`). Ages are told as moments."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._told: object = None
        """What the last text was made of."""

    def look(self, state: State, now: float) -> None:
        """`now` is the policy's: it stands while the arbiter is stopped."""
        effects = self._effects
        generation = effects.generation
        if not (generation.admin and generation.config.admin_status):
            return
        known = (state, generation, effects.upgrade.parent)
        if isinstance(self._told, tuple) and all(map(lambda a, b: a is b, known, self._told)):
            return
        self._told = known
        if not effects.processes.ledger.post(self._text(state, now)):
            short = self._text(state, now, with_workers=False)
            effects.processes.ledger.post(short)

    def _text(self, state: State, now: float, *, with_workers: bool = True) -> bytes:
        from tricorn.arbiter.control import report

        moment = time.monotonic_ns()
        status = report.status(state, self._effects, now, brief=True)
        status["began"] = moment - round((now - self._effects.began) * SECOND)
        # Arguments of a factory may be secrets. The name is that of the application if there is no other.
        app = str(status["app"])
        status.update({name: app.partition("(")[0] for name in ("app", "name") if status[name] == app})
        del status["uptime"]
        rows = []
        for worker in state.workers.values() if with_workers else ():
            row = report.worker(worker, self._effects.processes.handles.get(worker.nr), now, brief=True)
            # The note may have the text of an exception.
            rows.append({name: value for name, value in row.items() if name not in ("age", "note")})
            rows[-1]["started"] = moment - round((now - worker.started) * SECOND)
        rows.sort(key=lambda row: (row["slot"] is None, row["slot"]))
        return json.dumps({"status": status, "workers": rows}).encode()
