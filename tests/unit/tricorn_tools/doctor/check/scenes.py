"""Scenes: settings and a class, without an application."""

from __future__ import annotations

from typing import Any

from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.workers import registry
from tricorn_tools.doctor.check.scene import Scene


def scene(alias: str = "sync", *, said: tuple[str, ...] = (), threads: tuple[str, ...] = (), **values: Any) -> Scene:
    layer = Layer({name: Raw(value, "a test") for name, value in {"wsgi_app": "app:app", **values}.items()})
    return Scene(resolve([layer]), registry.load(alias), said, threads)
