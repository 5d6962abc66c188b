"""USR2: the server starts a successor with its listeners, or is one itself.

predecessor   start ──▶ both serve ──▶ told to leave: the successor is promoted
                            └──▶ successor_ended: the listeners are ours alone again
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from signal import Signals

from tricorn.arbiter import reexec
from tricorn.arbiter.generations import Generations
from tricorn.arbiter.hook_api import Server
from tricorn.arbiter.listeners import reuse_port
from tricorn.arbiter.pidfile import Pidfiles
from tricorn.errors import TricornError
from tricorn.unpatched import os


class Upgrade:
    def __init__(
        self,
        launch: reexec.Command,
        parent: int | None,
        pidfiles: Pidfiles,
        generations: Generations,
        server: Server,
        promoted: Callable[[], object] = lambda: None,
    ) -> None:
        """`parent` is the pid of the server that this one replaces; `promoted` is called when that has ended."""
        self.parent = parent
        """The pid of the predecessor; None when that is gone, or there was none."""
        self.successor: int | None = None
        """The pid of the server that replaces this one."""
        self._launch = launch
        self._pidfiles = pidfiles
        self._generations = generations
        self._server = server
        self._promoted = promoted

    def start(self, signals: Sequence[Signals]) -> int | None:
        """Starts a successor with the same command line and our listeners. Both serve until one of them is stopped.

        The successor's pid, or None if there is none. `signals` are those that the arbiter handles.
        """
        generation = self._generations.current
        log = generation.log
        if self.parent is not None:
            log.warning("USR2 signal ignored. Parent exists.")
            return None
        self._share_listeners(True)
        try:
            self.successor = reexec.start(
                self._launch,
                [listener.socket.fileno() for listener in reuse_port.to_hand_over(generation.all_listeners())],
                secrets=self._generations.tickets.as_bytes(),
                systemd=self._generations.inherits,
                signals=signals,
                before_exec=lambda: generation.config.pre_exec(self._server),
                failed=lambda error: log.error("Could not start a successor: %s", error),
            )
        except OSError as error:
            log.error("Could not start a successor: %s", error.strerror)
            self.successor_ended()
            return None
        log.info("Started a successor with pid: %s", self.successor)
        return self.successor

    def successor_ended(self) -> None:
        """The listeners are ours alone again."""
        self.successor = None
        self._share_listeners(self._generations.inherits)
        self._generations.current.log.warning("The successor has exited; this server keeps running.")

    def watch_parent(self) -> None:
        """Takes over the predecessor's pidfile and control socket once it has ended."""
        if self.parent is None or os.getppid() == self.parent:
            return
        self.parent = None
        generation = self._generations.current
        generation.log.info("Master has been promoted.")
        self._share_listeners(self._generations.inherits)
        try:
            self._pidfiles.rename(generation.config.pidfile)
        except TricornError as error:
            generation.log.error("%s", error)  # no reason to stop serving
        generation.set_title("master")
        self._promoted()

    def _share_listeners(self, shared: bool) -> None:
        for listener in self._generations.all_listeners():
            listener.shared = shared
