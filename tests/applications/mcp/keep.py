"""Sessions over streamable HTTP that go on until their worker leaves. Prints how each has ended, one a line."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client

CLIENTS = 4
PATIENCE = timedelta(seconds=60)


async def keep(url: str, over: asyncio.Event) -> None:
    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        workers, calls = set(), 0
        try:
            while not over.is_set():
                # A call that is not answered would raise another error.
                workers.add((await session.call_tool("where", {}, read_timeout_seconds=PATIENCE)).content[0].text)
                calls += 1
        except McpError as error:
            print(f"after {calls} calls in {len(workers)}: {error.error.message}", flush=True)


async def begin_again(url: str, over: asyncio.Event) -> None:
    while not over.is_set():
        await keep(url, over)


async def main() -> None:
    over = asyncio.Event()
    url = f"http://127.0.0.1:{sys.argv[1]}/mcp"
    asyncio.get_running_loop().run_in_executor(None, sys.stdin.read).add_done_callback(lambda _: over.set())
    print("begun", flush=True)
    await asyncio.gather(*(begin_again(url, over) for _ in range(CLIENTS)))
    print("ended", flush=True)


asyncio.run(main())
