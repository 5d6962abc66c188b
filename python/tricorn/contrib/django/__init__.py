"""Django app: makes `manage.py runserver` use tricorn. List it before django.contrib.staticfiles in INSTALLED_APPS.

`LiveServerThread` is for `LiveServerTestCase.server_thread_class`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.contrib.django.live_server import LiveServerThread

__all__ = ["LiveServerThread"]


def __getattr__(name: str) -> object:
    """Imported on demand: Django imports this package in production as well."""
    if name == "LiveServerThread":
        from tricorn.contrib.django.live_server import LiveServerThread

        return LiveServerThread
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
