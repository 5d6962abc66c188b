"""Chainlit mounted in FastAPI, as its documentation has it; the chat is in chat.py."""

from __future__ import annotations

from chainlit.utils import mount_chainlit
from fastapi import FastAPI

app = FastAPI()


@app.get("/app")
def read_main() -> dict[str, str]:
    return {"message": "Hello World from main app"}


mount_chainlit(app=app, target="chat.py", path="/chainlit")
