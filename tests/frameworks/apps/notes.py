"""Not an application: what those of the event loops note, and gates that they wait for, both by `tag`."""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path

FILE = Path(__file__).with_name("file.bin")
NOTES: defaultdict[str, list[str]] = defaultdict(list)
GATES: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)


async def lines() -> AsyncIterator[str]:
    for number in range(100):
        yield f"line {number}\n"
        await asyncio.sleep(0)


async def events(tag: str) -> AsyncIterator[str]:
    """Server-sent events: one, then others as the gate is opened; and a note when the client has left."""
    try:
        yield "data: first\n\n"
        await GATES[tag].wait()
        yield "data: second\n\n"
        if tag.endswith("endless"):
            await asyncio.sleep(60)
    finally:
        NOTES[tag].append("the stream is closed")


async def work(tag: str) -> None:
    """Something for later: it waits for the gate."""
    await GATES[tag].wait()
    NOTES[tag].append("worked")


async def held(tag: str) -> None:
    """What a request waits for that is not answered."""
    NOTES[tag].append("waits")
    try:
        await asyncio.sleep(60)
    finally:
        NOTES[tag].append("released")


async def digest(pieces: AsyncIterator[bytes], tag: str) -> dict[str, object]:
    """What came, and in how many pieces; the first is noted at once."""
    sha, size, count = hashlib.sha256(), 0, 0
    async for piece in pieces:
        if not piece:
            continue
        if not count:
            NOTES[tag].append("the first piece")
        sha.update(piece)
        size += len(piece)
        count += 1
    return {"size": size, "sha256": sha.hexdigest(), "pieces": count}
