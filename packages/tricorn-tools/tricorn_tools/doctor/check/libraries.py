"""Libraries that the application has imported: those that block this class, and those that were imported too early."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tricorn.libraries import LIBRARIES, Library
from tricorn_tools.doctor.check.finding import Finding, Severity
from tricorn_tools.doctor.check.scene import Scene


def examine(scene: Scene) -> Iterator[Finding]:
    if scene.is_green:
        from tricorn_tools.doctor.check import greenlets  # where there is such a class, there is tricorn-green

        yield from greenlets.examine(scene)
    elif scene.is_loop:
        for library in LIBRARIES.values():
            if library.loop and any(name in sys.modules for name in library.imports):
                yield _on_a_loop(scene, library)


def _on_a_loop(scene: Scene, library: Library) -> Finding:
    return Finding(
        "blocking-libraries",
        Severity.NOTE,
        f"{library.title} ({library.what}) is imported: a coroutine that waits in it blocks all requests of a "
        f"{scene.alias} worker. Functions that a framework runs in threads may use it.",
        f"In coroutines, use {library.loop}.",
    )
