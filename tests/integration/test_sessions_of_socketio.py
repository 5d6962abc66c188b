"""Clients of python-socketio that poll, while the workers that have their sessions are replaced (`max_requests`)."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from tests.harness import Server, proc, until
from tests.harness.deadline import PATIENCE
from tests.harness.needs import needs

needs("aiohttp")
socketio = pytest.importorskip("socketio")

pytestmark = pytest.mark.beyond_reference("there a session needs one worker, or a balancer")

CLIENTS = 4
WORKERS = 3
REPLACED = 3
"""So many workers, before the clients leave."""


class Story:
    """What the clients have seen."""

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self.calls = 0
        self.ended: list[int] = []
        """The workers with which sessions have ended, the session being at a call."""
        self.unbegun = 0

    @property
    def is_over(self) -> bool:
        return len(self.pids) >= WORKERS + REPLACED and len(self.ended) >= CLIENTS


async def live(url: str, story: Story) -> None:
    """Begins one session after another."""
    while not story.is_over:
        client = socketio.AsyncClient(reconnection=False)
        gone = asyncio.Event()
        client.on("disconnect", lambda *_, gone=gone: gone.set())
        try:
            await asyncio.wait_for(client.connect(url, transports=["polling"], wait_timeout=PATIENCE), PATIENCE)
        except socketio.exceptions.ConnectionError:  # its worker has left before it was one
            story.unbegun += 1
            continue
        await talk(client, gone, story)
        await asyncio.wait_for(client.disconnect(), PATIENCE)


async def talk(client: Any, gone: asyncio.Event, story: Story) -> None:
    """Calls until the session is over. That ends a call at once, and no call takes longer than `PATIENCE`."""
    pid, calls = 0, 0
    end = asyncio.create_task(gone.wait())
    while not story.is_over and not gone.is_set():
        call = asyncio.create_task(client.call("count", timeout=PATIENCE))
        await asyncio.wait({call, end}, return_when=asyncio.FIRST_COMPLETED)
        if not call.done():
            call.cancel()
            break
        if isinstance(call.exception(), socketio.exceptions.SocketIOError) and gone.is_set():
            break
        answer, calls = call.result(), calls + 1
        pid = pid or answer[0]
        assert answer == [pid, calls], "a session is in one worker, and each call counts there once"
        story.pids.add(pid)
        story.calls += 1
    if gone.is_set() and pid:
        story.ended.append(pid)
    end.cancel()


def test_sessions_live_as_long_as_their_workers_and_no_client_hangs() -> None:
    story = Story()

    async def all_of_them(url: str) -> None:
        await asyncio.gather(*(live(url, story) for _ in range(CLIENTS)))

    options = {"max_requests": 60, "max_requests_jitter": 30, "graceful_timeout": 1, "access_logfile": "-"}
    with Server("rooms:application", worker_class="asgi", workers=WORKERS, **options) as server:
        server.log.wait(r"Requests of one session go to one worker \(.*socketio")
        asyncio.run(asyncio.wait_for(all_of_them(f"http://127.0.0.1:{server.port}"), 3 * PATIENCE))
        until(lambda: not any(map(proc.is_running, story.ended)), "sessions end with their workers only")
        assert not server.log.matching("ERROR|Traceback"), server.log.text
        statuses = {found[1] for found in re.finditer(r'HTTP/1.1" (\d{3}) ', server.out.text)}
    assert statuses <= {"200", "400"}, "400 is what engineio answers to a session that it does not know"
    assert story.calls > CLIENTS
