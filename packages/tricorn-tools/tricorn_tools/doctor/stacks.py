"""Stacks that samplers of workers have noted. Pure.

Frames are those of Python, and three that the server makes. At the innermost end `[library] function`, where a thread
waits in C, and `[GIL] wait`. At the outermost end `[event loop] held up by …`, where a request waits for another one.
"""

from __future__ import annotations

from tricorn.errors import is_own
from tricorn.record import Record


class Frame(Record):
    file: str
    line: int
    function: str

    @property
    def is_python(self) -> bool:
        return not self.file.startswith("[")

    @property
    def is_native(self) -> bool:
        """A function in C that waits, or the wait for the GIL."""
        return not self.is_python and self.file != "[event loop]"


Stack = tuple[Frame, ...]
"""The outermost frame first."""


def of_application(frames: Stack) -> Stack:
    """Returns the stack without the server's frames; empty if there are no others."""
    stack = tuple(frame for frame in frames if not is_own(frame.file))
    return stack if any(frame.is_python for frame in stack) else ()


def split(stack: Stack) -> tuple[Stack, Frame | None]:
    """Python's part, and the function in C that it waits in."""
    if stack and stack[-1].is_native:
        return stack[:-1], stack[-1]
    return stack, None


def place(frame: Frame) -> str:
    return f"{frame.file}:{frame.line} in {frame.function}" if frame.is_python else f"{frame.file} {frame.function}"


def name(frame: Frame) -> str:
    return f"{frame.function} ({frame.file}:{frame.line})" if frame.is_python else f"{frame.file} {frame.function}"
