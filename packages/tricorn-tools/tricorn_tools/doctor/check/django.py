"""Django under ASGI: what views without `async` cost there."""

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
            f"{threaded} of {len(views)} views of Django are functions without async: under asgi each of their "
            "requests starts a thread of its own, and opens connections of databases that no other request can use "
            "(CONN_MAX_AGE has no effect). Functions that are called by sync_to_async outside of Django's handler, as "
            "in Channels' consumers, share one thread of their worker.",
            "-k gthread with the WSGI application keeps threads and their connections; or views with async.",
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
