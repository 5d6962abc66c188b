"""Libraries in greenlet workers: those that block, and those that were imported before they could be patched."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tricorn_green.drivers.records import Blocks, Driver, line
from tricorn_green.drivers.table import DRIVERS
from tricorn_tools.doctor.check.finding import Finding, Severity
from tricorn_tools.doctor.check.scene import Scene

OFTEN_HARMLESS = ("sqlite3",)
"""Imported by many applications that never wait in them."""
HOOKED = ("psycopg2", "psycopg", "grpcio")
"""Cooperative because the server configures them."""


def examine(scene: Scene) -> Iterator[Finding]:
    yield from _said(scene)
    for driver in DRIVERS:
        if any(name in sys.modules for name in driver.imports):
            yield from _in_greenlets(scene, driver)


def _said(scene: Scene) -> Iterator[Finding]:
    """Yields the warnings of a start. Blocking libraries have findings of their own."""
    known = {
        line(driver, treatment)
        for driver in DRIVERS
        if isinstance(treatment := driver.under(scene.alias), Blocks)
    }  # fmt: skip
    for text in scene.said:
        if text.startswith("offload: "):
            yield Finding(
                "offload",
                Severity.WARNING,
                text,
                "Name a function that exists, in a module that nothing has imported yet.",
            )
        elif text not in known:
            cure = "Import it in the application or in the hook post_fork, not in the configuration file."
            yield Finding("imported-too-early", Severity.WARNING, text, cure)


def _in_greenlets(scene: Scene, driver: Driver) -> Iterator[Finding]:
    treatment = driver.under(scene.alias)
    config = scene.config
    if not isinstance(treatment, Blocks):
        if not config.green_drivers and driver.title in HOOKED:
            yield Finding(
                "blocking-libraries",
                Severity.WARNING,
                f"{driver.title} is imported, and green_drivers is off (from {config.origin('green_drivers')}): "
                "it may block the whole worker while it waits.",
                "Remove the setting.",
            )
        return
    cure = treatment.cure
    if cure is not None and config.doctor == "heal" and (not config.cures or driver.title in config.cures):
        return
    severity = Severity.NOTE if driver.title in OFTEN_HARMLESS or treatment.when else Severity.WARNING
    when = f" {treatment.when}" if treatment.when else ""
    heal = f" Or start with --doctor heal: {cure.how}" if cure else ""
    yield Finding(
        "blocking-libraries",
        severity,
        f"{driver.title} ({driver.what}) is imported. While it waits{when}, it blocks all {scene.at_once} requests of "
        f"a {scene.alias} worker.",
        f"{treatment.remedy}{heal}",
    )
