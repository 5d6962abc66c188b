"""The heartbeat of a worker as hooks written for gunicorn look at it (`workertmp`)."""

from __future__ import annotations

from tricorn.metrics.scoreboard import Scoreboard


class Tmp:
    """gunicorn's heartbeat file, as far as hooks look at it: there is no file, liveness is in shared memory."""

    def __init__(self, page: memoryview) -> None:
        self._page = page

    def last_update(self) -> float:
        """Monotonic seconds; it rests while no request is running."""
        snapshot = Scoreboard(self._page).read()
        return snapshot.heartbeat / 1e9 if snapshot is not None else 0.0

    def notify(self) -> None:  # no class has more to do
        """Nothing to do: the core's monitor does it."""

    def close(self) -> None:
        """Nothing to close."""
