"""tricorn on a host, as its operator would run it there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.net import Host
from tests.harness import until
from tests.harness.server import DEFECTS, Lines

if TYPE_CHECKING:
    from typing_extensions import Self

PORT, ADMIN = 8000, 8001
READY = r"Ready: \d+ \w+ workers? serves? "
APPS = {"sync": "app:wsgi", "gthread": "app:wsgi", "asgi": "app:asgi"}


class Tricorn:
    """A context manager. `restart` and the like return when the host serves again."""

    def __init__(
        self,
        host: Host,
        worker_class: str = "sync",
        *,
        workers: int = 2,
        drain_delay: float = 0,
        extra: Sequence[str] = (),
    ) -> None:
        self.host = host
        self._words = [
            *(sys.executable, "-m", "tricorn", "-k", worker_class, "-w", str(workers)),
            *("-b", f"0.0.0.0:{PORT}", "--admin-bind", f"0.0.0.0:{ADMIN}", "--no-control-socket"),
            *("--drain-delay", str(drain_delay), "--graceful-timeout", "10", "--keep-alive", "75"),
            *("--forwarded-allow-ips", "198.18.0.0/15", "--chdir", str(Path(__file__).parent)),
            *(*extra, APPS[worker_class]),
        ]
        self._told = tempfile.TemporaryDirectory(prefix="cluster-")
        self._slowness = Path(self._told.name, "slowness")
        self.takes(1)
        self._env = {**os.environ, "CLUSTER_HOST": host.name, "CLUSTER_SLOWNESS": str(self._slowness)}
        self._env["PYTHONDONTWRITEBYTECODE"] = "1"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.stop(check=kind is None)
        finally:
            self._told.cleanup()

    def takes(self, times: float) -> None:
        """From now on work takes that many times as long here, as beside a neighbour that takes the processor."""
        whole = self._slowness.with_suffix(".new")
        whole.write_text(str(times))
        whole.rename(self._slowness)

    def start(self) -> None:
        self._process = self.host.start(self._words, env=self._env, stderr=subprocess.PIPE, start_new_session=True)
        assert self._process.stderr is not None
        self.log = Lines(self._process.stderr)
        self.pid = self._process.pid
        self.log.wait(READY)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def stop(self, *, check: bool = True) -> None:
        """TERM, and its end."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(30)
            # A successor of USR2 has left this process, and is no child of ours.
            until(lambda: not self.host.pids(), f"no process is left on {self.host.name}", within=30)
        finally:
            self.host.kill()
        self.log.join()
        if check:
            assert not [line for line in self.log.lines if DEFECTS.search(line)], self.log.text

    def restart(self) -> None:
        self.stop()
        self.start()

    def reload(self) -> None:
        """HUP, until all workers of the new generation serve."""
        generations = len(self.log.matching(READY))
        self.signal(signal.SIGHUP)
        until(lambda: len(self.log.matching(READY)) > generations, "the new workers serve")

    def upgrade(self) -> None:
        """USR2, and TERM to the old server when the new one serves."""
        old = len(self.log.matching(READY))
        self.signal(signal.SIGUSR2)
        until(lambda: len(self.log.matching(READY)) > old, "the new server serves")
        (pid,) = {int(match[1]) for match in self.log.matching(r"\[(\d+)\] \[INFO\] Ready: ")} - {self.pid}
        self._process.terminate()
        self._process.wait(30)
        self.pid = pid

    def leave_after_upgrade(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        until(lambda: not self.host.pids(), f"no process is left on {self.host.name}", within=30)
