"""To which installed package a file belongs, by the lists that installers leave (RECORD)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tricorn.record import Record

ANCESTORS = 6
"""How far above a file its packages' lists are looked for."""
MOST_LIST = 4 << 20
MOST_LISTS = 32 << 20
"""Bytes that are read for one file: the arbiter has other things to do."""
MOST_KNOWN = 256


class Package(Record):
    name: str
    version: str


class Owners:
    """Each file is looked up once."""

    def __init__(self) -> None:
        self._known: dict[str, Package | None] = {}

    def of(self, path: str) -> Package | None:
        if path not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[path] = _find(path) if path.startswith("/") else None
        return self._known[path]


def _find(path: str) -> Package | None:
    file = Path(path)
    for root in file.parents[:ANCESTORS]:
        try:
            lists = [each for each in root.iterdir() if each.name.endswith(".dist-info")]
        except (OSError, ValueError):  # ValueError: a worker has told a path with a NUL
            continue
        if not lists:
            continue
        part = file.relative_to(root)
        # The folder of a package is named after it as a rule, so its list is read first.
        folder = _plain(part.parts[0].removesuffix(".libs"))
        lists.sort(key=lambda each: not _plain(each.name).startswith(folder))
        left = MOST_LISTS
        for each in lists:
            text = _read(each / "RECORD")
            left -= len(text)
            if f"\n{part},".encode() in b"\n" + text:
                return _package(each.name)
            if left < 0:
                break
    return None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_LIST)
    except OSError:
        return b""


def _package(directory: str) -> Package | None:
    """`confluent_kafka-2.16.1.dist-info`."""
    name, dash, version = directory.removesuffix(".dist-info").rpartition("-")
    return Package(name.replace("_", "-"), version) if dash else None


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def same(name: str, other: str) -> bool:
    """Names of packages, which may be spelled in several ways."""
    return _plain(name) == _plain(other)


def version_of(name: str, path: str, told: Mapping[str, str]) -> str:
    """Of a library: as the module that brought it has told, or as its file is called; may be empty."""
    if name in told:
        return told[name]
    try:
        real = Path(path).resolve().name
    except (OSError, RuntimeError, ValueError):
        return ""
    found = re.search(r"\.so\.(\d+(?:\.\d+)+)$", real)
    return found[1] if found else ""
