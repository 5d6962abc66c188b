"""The subjects: each worker class with the application of its interface; and what can be seen of a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import Pool
from tests.harness import Server, Wire
from tests.harness.classes import EVENT_LOOPS, THREADED
from tests.harness.deadline import PATIENCE
from tests.harness.server import Lines
from tests.harness.wire import Fields, request

APPS = Path(__file__).with_name("apps")
FAR = 60
BODY_SECONDS = LATE_SECONDS = 1
WRITE_SECONDS = 2
"""Twice as long: a client that reads all the time has no processor for a second, now and then."""
RATE = 240
MOST_REQUESTS = 3
SOON = 2.0
"""Seconds for what is to be there already: the case is over, and a later request has left its lines."""
ROOM = 16
"""Requests at once, where a worker can have several: more than there are cases, which run side by side there."""


@dataclass(frozen=True)
class Subject:
    """A column of the table."""

    name: str
    worker_class: str
    app: str
    is_single: bool = False
    """One request at a time, which holds up all others."""

    @property
    def is_wsgi(self) -> bool:
        return self.app == "wsgi_app"

    @property
    def is_installed(self) -> bool:
        return self.worker_class in (*THREADED, *EVENT_LOOPS) or find_spec(self.worker_class) is not None


SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("sync", "sync", "wsgi_app", is_single=True),
        Subject("gthread", "gthread", "wsgi_app"),
        Subject("gevent", "gevent", "wsgi_app"),
        Subject("eventlet", "eventlet", "wsgi_app"),
        Subject("asgi", "asgi", "asgi_app"),
        Subject("asgi-websocket", "asgi", "asgi_app"),
        Subject("tornado", "tornado", "tornado_app"),
        Subject("tornado-wsgi", "tornado", "wsgi_app", is_single=True),
        Subject("aiohttp", "aiohttp", "aiohttp_app"),
    )
}


class Kind(Enum):
    """What a server is configured for."""

    MAIN = "main"
    OBSERVED = "observed"
    """The logger is one in Python; WSGI applications read their bodies as they come."""
    READING = "reading"
    """Where applications read their bodies as they come: `OBSERVED` for WSGI, and `MAIN` for the others."""
    LATE = "late"


SETTINGS: dict[Kind, dict[str, Any]] = {
    Kind.MAIN: {},
    Kind.OBSERVED: {"no_request_buffering": True},
    # Without a grace: what is not ended for its client's half-close is ended for its age.
    Kind.LATE: {
        "request_timeout": LATE_SECONDS,
        "asgi_disconnect_grace_period": 0,
        "connection_max_requests": MOST_REQUESTS,
    },
}


class Post(NamedTuple):
    """What `post_request` was told."""

    status: int
    sent: int
    headers: str


class Line(NamedTuple):
    """A line of the access log."""

    status: int
    sent: int


class Stage:
    """One server, and requests that can be told apart by their tags."""

    _tags = count(1)

    def __init__(self, pool: Pool, subject: Subject, kind: Kind) -> None:
        self.subject = subject
        self._told_by_python = kind is Kind.OBSERVED
        more: dict[str, Any] = {} if subject.is_single else {"worker_connections": ROOM}
        if subject.worker_class == "gthread":
            more = {"threads": ROOM}
        conf = "observed.py" if kind is Kind.OBSERVED else "conf.py"
        self.server: Server = pool.get(
            f"{subject.app}:application",
            worker_class=subject.worker_class,
            chdir=APPS,
            twins=False,
            extra=("-c", str(APPS / conf)),
            env={"POLICY_SUBJECT": subject.name},  # those of one class have a server each
            access_logfile="-",
            access_logformat="%(U)s %(s)s %(B)s",
            header_timeout=FAR,
            keep_alive=FAR,
            body_timeout=BODY_SECONDS,
            body_min_rate=RATE,
            write_timeout=WRITE_SECONDS,
            response_buffering="off",
            doctor="off",  # of a WSGI application that holds up a loop's thread it says so
            **more,
            **SETTINGS[kind],
        )

    def tag(self) -> str:
        return f"{self.subject.name}-{next(self._tags)}"

    def connect(self, **options: Any) -> Wire:
        return self.server.connect(**options)

    def told(self, tag: str, event: str, *, within: float = PATIENCE) -> str:
        """Waits until the application has told of an event; the words behind it."""
        (found, *_) = self.server.log.wait(rf"^told {tag} {event}(?: (.*))?$", within=within)
        return found[1] or ""

    def was_told(self, tag: str, event: str) -> bool:
        return bool(self.server.log.matching(rf"^told {tag} {event}\b"))

    def lines(self, tag: str) -> list[Line]:
        """The lines that the access log has of a request, once there is one."""
        log, pattern = self._access_log(tag)
        log.wait(pattern, within=SOON)
        return [Line(int(found[1]), int(found[2])) for found in log.matching(pattern)]

    def has_line(self, tag: str) -> bool:
        log, pattern = self._access_log(tag)
        return bool(log.matching(pattern))

    def _access_log(self, tag: str) -> tuple[Lines, str]:
        if self._told_by_python:
            return self.server.log, rf"access \S+/{tag} (\d+) (\d+) "
        return self.server.out, rf"/{tag} (\d+) (\d+)$"

    def posts(self, tag: str) -> list[Post]:
        """What `post_request` was told of a request, once it was."""
        pattern = rf"post \S+/{tag} (\S+) (\d+) (\[.*\])$"
        self.server.log.wait(pattern, within=SOON)
        return [Post(_status(found[1]), int(found[2]), found[3]) for found in self.server.log.matching(pattern)]

    def settle(self) -> None:
        """What was written before this is there to be seen: a later request has left its lines, if it leaves any."""
        tag = self.tag()
        with self.connect() as wire:
            assert wire.get(f"/hello/{tag}").status == 200
        log, pattern = self._access_log(tag)
        with suppress(AssertionError):  # the rows tell what is missing
            log.wait(pattern, within=SOON)
        with suppress(AssertionError):
            self.server.log.wait(rf"post \S+/{tag} 200 ", within=SOON)

    @contextmanager
    def gate(self) -> Iterator[Path]:
        """A file that the applications wait for; it is there at the end."""
        path = self.server.directory / f"gate-{next(self._tags)}"
        try:
            yield path
        finally:
            path.touch()


def _status(text: str) -> int:
    """0: none was sent, and `resp.status_code` is None."""
    return int(text) if text.isdigit() else 0


def post(target: str, fields: Fields, *parts: bytes) -> bytes:
    return request("POST", target, fields) + b"".join(parts)
