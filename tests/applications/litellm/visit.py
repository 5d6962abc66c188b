"""The admin pages with their files; completions by OpenAI's client, at once and as streams, some of which are left."""

from __future__ import annotations

import json

from browser import Browser, visit
from openai import OpenAI

KEY = "sk-5d41402abc4b2a76b9719d911017c592"
QUESTION = {"model": "parrot", "messages": [{"role": "user", "content": "What does Polly want?"}]}


def steps(browser: Browser) -> dict[str, object]:
    seen: dict[str, object] = {"docs": browser.load("/"), "admin": browser.load("/ui/")}
    with OpenAI(api_key=KEY, base_url=f"{browser.base}/v1", max_retries=0) as client:
        seen["models"] = [model.id for model in client.models.list()]
        seen["answer"] = client.chat.completions.create(**QUESTION).choices[0].message.content
        stream = client.chat.completions.create(stream=True, **QUESTION)
        seen["stream"] = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
        with client.chat.completions.create(stream=True, **QUESTION) as left:
            seen["left"] = next(iter(left)).choices[0].delta.content
    body = json.dumps(QUESTION | {"stream": True}).encode()
    fields = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    for _ in range(5):
        browser.leave("/v1/chat/completions", b"data: ", "POST", body, **fields)
    seen["alive"] = browser.get("/health/liveliness").json()
    return seen


visit(steps)
