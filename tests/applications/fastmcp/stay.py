"""Calls tools while workers come and go."""

from __future__ import annotations

import asyncio
import sys
import threading

from fastmcp import Client

over = threading.Event()


async def talk(port: str) -> int:
    calls = 0
    while not over.is_set():
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            for _ in range(4):
                result = await client.call_tool("add", {"a": calls, "b": 1})
                assert result.data == calls + 1
                calls += 1
    return calls


def wait_for_the_end() -> None:
    sys.stdin.read()
    over.set()


threading.Thread(target=wait_for_the_end, daemon=True).start()
print("begun", flush=True)
assert asyncio.run(talk(sys.argv[1])) > 0
print("ended", flush=True)
