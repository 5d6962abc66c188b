"""A state, a clock and made-up pids: the policy's tests live in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field
from signal import Signals
from typing import Any

from tricorn.arbiter.policy.commands import Command, Exit, Log, Reload, RunReloadHooks, Send, Spawn, StartMold
from tricorn.arbiter.policy.decide import decide
from tricorn.arbiter.policy.events import Event, Prepared, Reloaded, Signalled, Spawned, Start, Tick, Told
from tricorn.arbiter.policy.settings import Policy
from tricorn.arbiter.policy.state import State
from tricorn.record import replace
from tricorn.workers.messages import Ready

QUIET = Policy(
    graceful_timeout=30,
    timeout=0,
    boot_timeout=0,
    drain_delay=0,
    drain_quiet=0,
    max_worker_memory=0,
    max_worker_lifetime=0,
    max_worker_lifetime_jitter=0,
    reload=False,
    molds=False,
    refork=(),
    daemon=False,
    reuse_port=False,
    canary=0,
    canary_time=60,
    canary_requests=500,
    workers=0,
    sizing=None,
    max_workers=8,
)
"""Settings by which nothing happens by itself."""


def quiet(**settings: Any) -> Policy:
    return replace(QUIET, **settings)


@dataclass
class Arbiter:
    """Pids are the worker's number plus 100."""

    state: State
    now: float = 1000.0
    sent: list[Command] = field(default_factory=list)

    def feel(self, event: Event) -> list[Command]:
        self.state, commands = decide(self.state, event, self.now)
        for command in list(commands):
            if isinstance(command, StartMold) or (isinstance(command, Spawn) and command.mold is None):
                self.feel(Spawned(command.nr, command.nr + 100))
        return commands

    def wait(self, seconds: float) -> list[Command]:
        self.now += seconds
        return self.feel(Tick())

    def signal(self, name: str) -> list[Command]:
        return self.feel(Signalled(Signals[f"SIG{name}"]))

    def boot(self) -> None:
        for command in self.feel(Start()):
            assert isinstance(command, Spawn)
            self.feel(Told(command.nr, Ready()))

    def hang_up(self, generation: int = 2, target: int | None = None, policy: Policy | None = None) -> list[Command]:
        """HUP, and a configuration that can be used."""
        assert Reload() in self.signal("HUP")
        return self.reload(generation, target, policy)

    def reload(self, generation: int = 2, target: int | None = None, policy: Policy | None = None) -> list[Command]:
        """A generation that was prepared, whose hooks want `target` workers."""
        policy = policy or self.state.policy
        hooks = self.feel(Prepared(generation, policy))
        assert [type(each) for each in hooks] == [RunReloadHooks]
        return self.feel(Reloaded(generation, policy, target or self.state.target))


def arbiter(workers: int = 2, graceful: float = 30, most: int = 8, **settings: float | bool) -> Arbiter:
    return Arbiter(State(workers, quiet(graceful_timeout=graceful, max_workers=most, **settings)))


def running(workers: int = 2, graceful: float = 30, most: int = 8, **settings: float | bool) -> Arbiter:
    it = arbiter(workers, graceful, most, **settings)
    it.boot()
    return it


def spawned(commands: list[Command]) -> list[int]:
    return [command.nr for command in commands if isinstance(command, Spawn)]


def sends(commands: list[Command]) -> list[tuple[int, str]]:
    return [(command.nr, command.signal.name) for command in commands if isinstance(command, Send)]


def texts(commands: list[Command], level: str | None = None) -> list[str]:
    return [c.text for c in commands if isinstance(c, Log) and level in (None, c.level)]


def exits(commands: list[Command]) -> list[int]:
    return [command.code for command in commands if isinstance(command, Exit)]
