"""Formats the report of `tricorn doctor --pid`. Pure, except for the lines of source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

Thread = Mapping[str, Any]
SourceLine = Callable[[str, int], str]
"""Returns a line of a source file; empty if it cannot be read."""

NATIVE = "NATIVE"
"""Verdict of threads without Python."""


def text(report: Mapping[str, Any], source: SourceLine, *, native: bool = False) -> str:
    """Renders a block for the process and one for each thread; threads without Python are one line, unless `native`."""
    blocks = ["\n".join(_process(report))]
    interpreter = report["python"]["path"] if report["python"] else ""
    own = [thread for thread in report["threads"] if native or thread["verdict"] != NATIVE]
    others = [thread for thread in report["threads"] if not native and thread["verdict"] == NATIVE]
    blocks += ["\n".join(_thread(thread, interpreter, source, native=native)) for thread in own]
    if others:
        blocks.append("\n".join(_natives(others)))
    if report["notes"]:
        blocks.append("\n".join(report["notes"]))
    return "\n\n".join(blocks)


def _process(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"Process {report['pid']}: {report['command']}"
    python = report["python"]
    if python is not None:
        yield f"CPython {python['version']} ({python['path']}), {_gil(python['gil'], report['threads'])}."


def _gil(gil: Mapping[str, Any], threads: Sequence[Thread]) -> str:
    if gil["locked"] is None:
        return "GIL disabled or not found"
    if not gil["locked"]:
        return "GIL free"
    name = next((thread["name"] for thread in threads if thread["tid"] == gil["holder"]), None)
    return f"GIL held by thread {gil['holder']} ({name})" if name is not None else "GIL held"


def _thread(thread: Thread, interpreter: str, source: SourceLine, *, native: bool) -> Iterator[str]:
    main = ", main thread" if thread["main"] else ""
    figures = f"CPU {percent(thread['cpu'])}"
    if thread["queued"] >= 0.05:
        figures += f", waiting for CPU {percent(thread['queued'])}"
    yield f"Thread {thread['tid']} ({thread['name']}{main}), state {thread['state']}, {figures}: {thread['verdict']}"
    yield f"  {thread['sentence']}"
    for frame in thread["python"]:
        line = source(frame["file"], frame["line"])
        yield f"    {frame['file']}:{frame['line'] or '?'} in {frame['function']}{f': {line}' if line else ''}"
    if thread["moving"] and not thread["python"]:
        yield "    (Its frames changed while they were read.)"
    yield from _stack(thread, interpreter, all_of_it=native)


def _stack(thread: Thread, interpreter: str, *, all_of_it: bool) -> Iterator[str]:
    stack, wait = thread["native"], thread["wait_channel"]
    if all_of_it and wait:
        yield f"    in the kernel: {wait}"
    if all_of_it and stack["missing"]:
        yield f"    no native stack: {stack['missing']}"
    frames = stack["frames"] if all_of_it else _of_libraries(thread, interpreter)
    for frame in frames:
        yield f"    native: {_function(frame)}{'' if frame['certain'] else ' (perhaps)'}"


def _of_libraries(thread: Thread, interpreter: str) -> Sequence[Mapping[str, Any]]:
    """Returns native frames without the interpreter's own, which add nothing to Python's."""
    if thread["native"]["library"] is None:
        return []
    before = takewhile(lambda frame: frame["path"] != interpreter, thread["native"]["frames"])
    return [frame for frame in before if frame["function"]]


def _function(frame: Mapping[str, Any]) -> str:
    file = frame["path"].rsplit("/", 1)[-1] or f"{frame['address']:#x}"
    return f"{frame['function']} ({file})" if frame["function"] else file


def _natives(threads: Sequence[Thread]) -> Iterator[str]:
    count = f"{len(threads)} threads" if len(threads) > 1 else "1 thread"
    yield f"{count} without Python (--native shows their stacks):"
    for thread in threads:
        yield f"  {thread['tid']} ({thread['name']}), CPU {percent(thread['cpu'])}: {thread['sentence']}"


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"
