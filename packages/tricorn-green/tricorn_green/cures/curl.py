"""pycurl: a transfer is made by a thread, and what it calls is called by the greenlet that asked for it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from tricorn_green.cures.replace import always, in_callbacks, subclass, unless_zero
from tricorn_green.offload import How, brought

if TYPE_CHECKING:
    from tricorn_green.drivers.records import Ground

IN_MEMORY = (io.BytesIO, io.BufferedRandom, io.BufferedReader, io.BufferedWriter, io.FileIO)
"""Types that a thread may read and write by itself, as WRITEDATA and the like."""


def apply(pycurl: Any, _: Ground) -> None:
    curl, multi = pycurl.Curl, pycurl.CurlMulti
    if getattr(curl, "__tricorn__", False):
        return

    def setopt(self: Any, option: int, value: Any) -> Any:
        return curl.setopt(self, option, _value(value))

    of_callbacks = in_callbacks(curl, How(serial=True), "getinfo", "getinfo_raw", "pause", "unpause")
    names: dict[str, Any] = {"setopt": setopt, **of_callbacks}
    made = subclass(curl, always("perform", "perform_rb", "perform_rs"), How(serial=True), names)
    pycurl.Curl = made
    pycurl.CurlMulti = subclass(multi, {"select": unless_zero(0)}, How(serial=True))


def _value(value: Any) -> Any:
    if callable(value):
        return brought(value)
    if type(value) in IN_MEMORY or not (hasattr(value, "write") or hasattr(value, "read")):
        return value
    return _File(value)


class _File:
    """An object of the application's that data goes to or comes from: it may be anything."""

    def __init__(self, file: Any) -> None:
        for name in ("write", "read", "readline"):
            if hasattr(file, name):
                setattr(self, name, brought(getattr(file, name)))
