"""What applications written for uvicorn do with its loggers: `RECIPE`, at the time that `WHEN` says."""

from __future__ import annotations

import logging
import os
from logging.config import dictConfig
from typing import Any


class NoHealth(logging.Filter):
    """The recipe against health checks in the access log."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.args and record.args[2] == "/health")  # type: ignore[index]


def filter_out() -> None:
    logging.getLogger("uvicorn.access").addFilter(NoHealth())


def filter_gunicorns() -> None:
    logging.getLogger("gunicorn.access").addFilter(lambda record: record.args["U"] != "/health")  # type: ignore[index, call-overload]


def add_handler() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("ADDED %(message)s"))
    logging.getLogger("uvicorn.access").addHandler(handler)


def set_formatter() -> None:
    logging.getLogger("uvicorn.access").handlers[0].setFormatter(logging.Formatter("SET %(message)s"))


def take_over() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("TAKEN %(name)s %(message)s"))
    logging.getLogger("uvicorn").handlers = [handler]
    for name in ("uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


def leave_out() -> None:
    dictConfig({"version": 1, "loggers": {"shop": {"level": "INFO"}}})


def nothing() -> None:
    pass


if os.environ.get("WHEN") == "import":
    globals()[os.environ["RECIPE"]]()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        if os.environ.get("WHEN") == "startup":
            globals()[os.environ["RECIPE"]]()
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["path"] == "/raise":
        raise ValueError("of the application")
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).info("%s from %s", scope["path"], name)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
