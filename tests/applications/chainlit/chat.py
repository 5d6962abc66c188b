"""Greets, answers word by word, and counts the bytes of what it is sent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import chainlit


@chainlit.on_chat_start
async def start() -> None:
    await chainlit.Message("What do you want?").send()


@chainlit.on_message
async def answer(message: chainlit.Message) -> None:
    reply = chainlit.Message("")
    for word in f"You want {message.content}".split():
        await reply.stream_token(word + " ")
        await asyncio.sleep(0.01)
    for element in message.elements:
        content = await asyncio.to_thread(Path(element.path).read_bytes)
        await reply.stream_token(f"({len(content)} bytes)")
    await reply.send()
