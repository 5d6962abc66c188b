"""Factories of `runserver`'s application. A worker calls them after the fork, so a reload loads everything anew."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.conf import settings


def wsgi() -> Any:
    """Returns the application of the setting WSGI_APPLICATION, or Django's default."""
    from django.core.servers.basehttp import get_internal_wsgi_application

    return _with_urls(get_internal_wsgi_application())


def wsgi_with_static_files() -> Any:
    """Returns `wsgi` with the static files handler of django.contrib.staticfiles."""
    application = wsgi()
    from django.contrib.staticfiles.handlers import StaticFilesHandler

    return StaticFilesHandler(application)


def asgi() -> Any:
    """Returns the application of the setting ASGI_APPLICATION."""
    from django.utils.module_loading import import_string

    return _with_urls(import_string(settings.ASGI_APPLICATION))


def asgi_with_static_files() -> Any:
    """Returns `asgi` with the static files handler of django.contrib.staticfiles."""
    application = asgi()
    from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler

    return ASGIStaticFilesHandler(application)


def _with_urls(application: Any) -> Any:
    """`application`, and the modules of its URLs are loaded.

    The first request would load them otherwise, and a change that comes soon after would not be noticed: a reload
    compares with the file that it saw first. Django's own reloader does the same.
    """
    from django.urls import get_resolver

    with suppress(Exception):  # a mistake there is a page of Django's
        _ = get_resolver().urlconf_module
    return application
