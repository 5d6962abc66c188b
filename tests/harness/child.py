"""Running a function in a forked child: for what a process can do only once, or not undo."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")


def in_child(function: Callable[[], T]) -> T:
    """What `function` returns in a fork of this process. Raises AssertionError with the child's traceback."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            answer: tuple[bool, object] = (True, function())
        except BaseException:
            answer = (False, traceback.format_exc())
        with open(write_end, "wb") as stream:
            pickle.dump(answer, stream)
        os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as stream:
        data = stream.read()
    os.waitpid(pid, 0)
    assert data, "the child died without an answer"
    succeeded, value = pickle.loads(data)
    assert succeeded, value
    return cast("T", value)
