"""What the effects have in common."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from tests.harness import Site

FACTS = "facts:application"


def facts(server: Site, *fields: tuple[str, str], target: str = "/") -> Any:
    reply = server.get(target, *fields)
    assert reply.status == 200, reply
    return reply.json()


def fact_site(config: str | Path, **options: Any) -> Site:
    return Site(config, app=FACTS, **options)


def raw(server: Site, data: bytes) -> bytes:
    """What the server answers to these bytes, until it closes."""
    with server.connect() as wire:
        wire.send(data).finish_sending()
        return wire.ended()


def status(server: Site, data: bytes) -> int:
    return int(raw(server, data).split()[1])


def refuses(name: str, good: str, bad: str) -> None:
    """For what concerns a class that is not there yet: a good value is taken, a bad one is refused by name."""
    with Site(f"{name} = {good}\n") as server:
        assert server.get("/hello").status == 200
    with Site(f"{name} = {bad}\n", wait=False) as server:
        assert server.wait_exit() in (1, 2)
        assert name in server.log.text
        assert "Traceback" not in server.log.text


def printed(config: str, *extra: str) -> str:
    with Site(config, extra=("--print-config", *extra), wait=False) as server:
        assert server.wait_exit() == 0
        return server.out.text


def files_below(server: Site, directory: Path) -> list[str]:
    """Files of the worker there. Other descriptors come and go meanwhile."""
    found = []
    for link in Path(f"/proc/{server.worker_pid()}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(link.readlink()))
    return [name for name in found if name.startswith(str(directory))]
