"""Advice for the log about a library that has blocked a greenlet worker."""

from __future__ import annotations

from tricorn_green.drivers.records import Blocks, Check, Hook
from tricorn_green.drivers.table import DRIVERS


def of_library(title: str, alias: str, doctor: str) -> str:
    """Returns the remedy in whole sentences, or nothing. `doctor` is the setting of this name."""
    driver = next(driver for driver in DRIVERS if driver.title == title)
    match driver.under(alias):
        case Blocks(remedy=remedy, cure=cure):
            heal = " Or leave the code as it is and set --doctor heal." if cure and doctor != "heal" else ""
            return f"{remedy}{heal}"
        case Hook() | Check():
            return f"{title} can wait cooperatively; the startup log says why it does not here."
    return ""
