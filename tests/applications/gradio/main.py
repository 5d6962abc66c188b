"""Gradio mounted in FastAPI, as its documentation has it: functions, a chat that streams, files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import gradio
from fastapi import FastAPI


def shout(text: str) -> str:
    return text.upper()


async def count(to: float) -> AsyncIterator[int]:
    for number in range(int(to)):
        yield number
        await asyncio.sleep(0.02)


def chat(message: str, history: list[object]) -> Iterator[str]:
    for end in range(1, len(message) + 1):
        yield f"{len(history)}: {message[:end]}"


def turn_around(path: str) -> str:
    result = Path(path).with_suffix(".reversed")
    result.write_bytes(Path(path).read_bytes()[::-1])
    return str(result)


with gradio.Blocks(title="Everyday") as blocks:
    gradio.Interface(shout, "text", "text", api_name="shout")
    gradio.Interface(count, "number", "number", api_name="count")
    gradio.Interface(turn_around, "file", "file", api_name="turn_around")
    gradio.ChatInterface(chat, api_name="chat")

app = FastAPI()


@app.get("/")
def read_main() -> dict[str, str]:
    return {"message": "This is your main app"}


app = gradio.mount_gradio_app(app, blocks, path="/gradio")
