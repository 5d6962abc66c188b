"""Modules that a worker inherited from the arbiter because the application was imported before the fork."""

from __future__ import annotations

import sys


def forget_children() -> None:
    """Forgets processes that `multiprocessing` has started in the arbiter: they are not the worker's.

    `multiprocessing` terminates daemonic children at the end of a process, and waits for the others. It forgets those
    of the parent in processes that it forks itself (`BaseProcess._bootstrap`), and knows nothing of other forks.
    """
    children = getattr(sys.modules.get("multiprocessing.process"), "_children", None)
    if children is not None:
        children.clear()
