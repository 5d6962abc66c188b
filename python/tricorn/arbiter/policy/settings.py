"""The settings that the policy decides by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tricorn.arbiter.policy.canary import Plan
from tricorn.record import Record

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.config.sizing import Sizing

SPARE_WORKERS = 64


class Policy(Record):
    """Settings under their own names, read from the configuration of a generation; times in seconds, 0 is off."""

    graceful_timeout: float
    timeout: float
    boot_timeout: float
    drain_delay: float
    drain_quiet: float
    max_worker_memory: int
    max_worker_lifetime: float
    max_worker_lifetime_jitter: float
    reload: bool
    molds: bool
    """Workers are forked by a mold, which has loaded the application (`preload_app = mold`)."""
    refork: tuple[int, ...]
    """Requests after which a worker becomes the mold, for the first time, the second and so on."""
    daemon: bool
    reuse_port: bool
    canary: int | str
    canary_time: float
    canary_requests: int
    workers: int
    """The configured number; hooks and operators may want another one."""
    sizing: Sizing | None
    """The calculation of the number, if it was `auto`."""
    max_workers: int
    """The limit for operators and hooks: the scoreboard has no more pages."""

    @classmethod
    def of(cls, config: Config) -> Policy:
        settings: dict[str, Any] = {name: getattr(config, name) for name in cls.__match_args__[:-1]}
        most = config.workers if config.sizing is None else config.sizing.most
        return cls(**settings, max_workers=most + SPARE_WORKERS)

    @property
    def plan(self) -> Plan:
        return Plan(self.canary, self.canary_time, self.canary_requests)

    def configures_as_many_as(self, before: Policy) -> bool:
        """Whether the number is configured as it was; `auto` is compared for the same kind of worker."""
        if self.sizing is None or before.sizing is None:
            return self.workers == before.workers
        return self.workers == before.sizing.of(self.sizing.kind).count
