"""Each test gets the process's loggers back as it found them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tricorn.config.config import Config
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.log.transaction import _State

Configure = Callable[..., Config]


@pytest.fixture
def configure() -> Configure:
    """`configure(errorlog="-", loglevel="info")`: a configuration, as a file with these names would make it."""

    def make(**settings: Any) -> Config:
        return resolve([Layer({name: Raw(value, "test") for name, value in settings.items()})])

    return make


@pytest.fixture(autouse=True)
def _same_loggers() -> Iterator[None]:
    before = _State.now()
    raising = logging.raiseExceptions
    kept = [(logger, logger.handlers[:]) for logger in map(logging.getLogger, ("gunicorn.error", "gunicorn.access"))]
    for logger, _ in kept:
        logger.handlers[:] = []
        logger.propagate = True  # or pytest puts handlers of its own on it
    yield
    before.restore()
    before.forget()
    for logger, handlers in kept:
        logger.handlers[:] = handlers
    logging.raiseExceptions = raising
    assert not [name for name in sys.modules if name.startswith("log_probe")]
