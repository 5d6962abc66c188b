"""The setting `warmup`: paths that the application answers once, in the mold or in each worker, before it serves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from tricorn import forked
from tricorn import log as logs
from tricorn.errors import TricornError, shown
from tricorn.gateway.warmup import Ask, target_of
from tricorn.workers import boot_failure

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.log import Logger
    from tricorn.workers.contract import Contract

Claim = Callable[[str], bool]
"""Whether this process is to log a text (`once`)."""


def warm_worker(worker: Contract) -> None:
    """Warms up an application that was loaded in this worker, or in the arbiter."""
    config = worker.spec.config
    if not (config.molds or worker.stands_in or worker.leaving):
        _warm(config, worker.alias, worker.make_ask(), worker.log, worker.spec.once.claim)


def warm_mold(kind: type[Contract], application: Any, config: Config, log: Logger, claim: Claim) -> None:
    """Warms up an application of which workers are forked; it is shut down again where it has to be started up."""
    try:
        with kind.rehearse(application, config, log) as ask:
            _warm(config, kind.alias, ask, log, claim)
    except (Exception, SystemExit) as error:  # the workers will fail likewise, or do better
        reason = boot_failure.reason(error)
        if claim(f"warmup {reason}"):
            log.warning("Warm-up: the application cannot be started up in the mold: %s", reason, exc_info=_trace(error))
    finally:
        logs.enable(log)


def _warm(config: Config, alias: str, ask: Ask | None, log: Logger, claim: Claim) -> None:
    if ask is not None:
        _ask_for(config.warmup, ask, log, claim)
    elif claim("warmup has no effect"):
        log.warning(
            "warmup (from %s) has no effect with %s: this class cannot call an application without a connection.",
            config.origin("warmup"),
            alias,
        )


def _ask_for(texts: Sequence[str], ask: Ask, log: Logger, claim: Claim) -> None:
    for text in texts:
        began = time.monotonic()
        try:
            with forked.fence():
                status = copy_context().run(ask, target_of(text))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also those of greenlets and of cancelled tasks
            reason = boot_failure.reason(error)
            if claim(f"warmup {text} {reason}"):
                log.warning("Warm-up: %s failed: %s", text, reason, exc_info=_trace(error))
            continue
        if status is None:
            return
        took = time.monotonic() - began
        log.debug("Warm-up: %s answered %d in %.3f s", text, status, took)
        if status >= SERVER_ERROR and claim(f"warmup {text} {status}"):
            log.warning("Warm-up: %s answered %d", text, status)


def _trace(error: BaseException) -> Any:
    return None if isinstance(error, TricornError) else shown(error)


SERVER_ERROR = 500
