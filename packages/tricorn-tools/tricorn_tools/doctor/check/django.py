"""Django under ASGI: the cost of views without `async`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tricorn_tools.doctor.check.finding import Finding, Severity
from tricorn_tools.doctor.check.scene import Scene


def examine(scene: Scene) -> Iterator[Finding]:
    if scene.alias != "asgi" or "django.core.handlers.asgi" not in sys.modules:
        return
    views = list(_views())
    threaded = sum(not is_async for is_async in views)
    if threaded:
        yield Finding(
            "django-under-asgi",
            Severity.NOTE,
            f"{threaded} of {len(views)} Django views are functions without async: under asgi each of their requests "
            "starts a new thread and opens its own database connections (CONN_MAX_AGE has no effect). Functions called "
            "through sync_to_async outside of Django's handler, as in Channels consumers, share one thread per worker.",
            "Serve the WSGI application with -k gthread, which keeps threads and connections, or make the views async.",
        )


def _views() -> Iterator[bool]:
    """Whether each view of the project is a coroutine function. None, if its URLs cannot be imported."""
    with suppress(Exception):
        from asgiref.sync import iscoroutinefunction
        from django.urls import get_resolver

        waiting: list[Any] = list(get_resolver().url_patterns)
        while waiting:
            pattern = waiting.pop()
            if hasattr(pattern, "url_patterns"):
                waiting += pattern.url_patterns
            else:
                yield bool(iscoroutinefunction(pattern.callback))
