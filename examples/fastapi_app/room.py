"""Who is in the chat, and what is said there. Each member has a queue; one that falls behind has to leave."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

Line = dict[str, str]
Queue = asyncio.Queue["Line | None"]

#: Lines that may wait for a member whose connection is slow.
MOST_WAITING = 100


class Room:
    """One per process."""

    def __init__(self) -> None:
        self._queues: dict[Queue, str] = {}

    def names(self) -> list[str]:
        """The members that chat; one that only listens has no name."""
        return sorted(name for name in self._queues.values() if name)

    def say(self, name: str, text: str) -> None:
        line = {"from": name, "text": text}
        for queue in list(self._queues):
            if queue.full():
                del self._queues[queue]
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(line)

    @contextmanager
    def entered(self, name: str = "") -> Iterator[Queue]:
        """What is said while one is inside; `None`: one did not keep up."""
        queue: Queue = asyncio.Queue(MOST_WAITING)
        self._queues[queue] = name
        if name:
            self.say("", f"{name} came in")
        try:
            yield queue
        finally:
            self._queues.pop(queue, None)
            if name:
                self.say("", f"{name} left")
