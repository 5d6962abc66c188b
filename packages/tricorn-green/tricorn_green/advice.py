"""Advice for the log about a library that has blocked a greenlet worker."""

from __future__ import annotations

from tricorn_green.drivers.records import Blocks, Check, Hook
from tricorn_green.drivers.table import DRIVERS


def of_library(title: str, alias: str, doctor: str) -> str:
    """Returns whole sentences, or nothing. `doctor` is the setting of this name."""
    driver = next(driver for driver in DRIVERS if driver.title == title)
    match driver.under(alias):
        case Blocks(remedy=remedy, cure=cure):
            heal = " Without a change of the code: --doctor heal." if cure and doctor != "heal" else ""
            return f"{remedy}{heal}"
        case Hook() | Check():
            return f"{title} can wait cooperatively; the log of the start says why it does not here."
    return ""
