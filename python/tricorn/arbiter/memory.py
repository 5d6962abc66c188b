"""How much memory a process has, and what of it forks share."""

from __future__ import annotations

import gc
from collections.abc import Mapping

from tricorn.unpatched import os

_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


def rss(pid: int) -> int | None:
    """The resident set in bytes, pages shared with other processes included; None when it is not known."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as stream:
            fields = stream.read().split()
    except OSError:
        return None
    # size, resident, shared … in pages. A zombie has none of them, which is no measurement.
    pages = int(fields[1]) if len(fields) > 1 else 0
    return pages * _PAGE_SIZE or None


def freeze() -> None:
    """What exists now is no garbage: keeps the workers' collectors from writing to the pages it is on.

    What the start has freed goes back to the kernel. After a reload what was frozen before is looked at once more: the
    modules of the old configuration may be garbage by now.
    """
    from tricorn.workers import native

    # `logging` asks this of a line's only argument. The first answer walks along all classes of mappings, and is kept.
    isinstance(0, Mapping)
    gc.unfreeze()
    gc.collect()
    native.trim_heap()
    gc.freeze()
