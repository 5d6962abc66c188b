"""Agents that observe applications where other servers load them: New Relic's.

It wraps what `gunicorn.app.base.Application.wsgi` returns, and ASGI applications where uvicorn's `Config` has them.
This server calls neither. Where the agent is not loaded nothing is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

NEW_RELIC = "newrelic.agent"


def observed_wsgi(application: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the application as New Relic's hook of `gunicorn.app.base` wraps it for gunicorn's workers."""
    if NEW_RELIC not in sys.modules:
        return application
    loader = object.__new__(import_module("gunicorn.app.base").Application)
    loader.callable = application
    found: Callable[..., Any] = loader.wsgi()
    return found


def observed_asgi(application: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the application as New Relic wraps it for uvicorn. One that its author has wrapped stays as it is."""
    if NEW_RELIC not in sys.modules or type(application).__module__.partition(".")[0] == "newrelic":
        return application
    wrap: Callable[..., Callable[..., Any]] = import_module("newrelic.api.asgi_application").ASGIApplicationWrapper
    return wrap(application)
