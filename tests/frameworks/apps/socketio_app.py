"""A Flask-SocketIO application as its documentation writes it: an echo, and what a background task says later."""

from __future__ import annotations

import os
from typing import Any

from flask import Flask, request
from flask_socketio import SocketIO, emit

application = Flask(__name__)
# Flask-SocketIO would take the first library that is installed, whatever the server's worker class is.
socketio = SocketIO(application, async_mode=os.environ["ASYNC_MODE"], ping_interval=1)


@application.get("/mode")
def mode() -> str:
    return str(socketio.async_mode)


@socketio.on("echo")
def echo(text: str) -> None:
    emit("echoed", text)


@socketio.on("later")
def later(seconds: float) -> None:
    socketio.start_background_task(say, seconds, request.sid)


@socketio.on("everybody")
def everybody(text: str) -> None:
    emit("told", text, broadcast=True)


def say(seconds: float, sid: Any) -> None:
    socketio.sleep(seconds)
    socketio.emit("said", {"slept": seconds}, to=sid)
