"""The applications for FastAPI: an endpoint on the event loop, and one in a thread."""

# Installed where the servers are measured, not where they are type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,misc,untyped-decorator"

from __future__ import annotations

from fastapi import FastAPI

app = FastAPI()


@app.get("/def")
def in_a_thread() -> dict[str, object]:
    return {"message": "Hello, World!", "items": [1, 2, 3]}


@app.get("/async")
async def on_the_loop() -> dict[str, object]:
    return {"message": "Hello, World!", "items": [1, 2, 3]}
