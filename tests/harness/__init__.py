"""Real processes, real sockets: what the suites need to start a server and to talk to it byte by byte."""

from __future__ import annotations

from tests.harness.classes import (
    CLASSES,
    EVENT_LOOPS,
    GREEN,
    GREEN_CLASSES,
    KINDS,
    THREAD_CLASSES,
    WSGI_KINDS,
    at_once,
    configured,
    each,
    room,
)
from tests.harness.deadline import until
from tests.harness.load import CLOSE, Load
from tests.harness.server import APPS, REFERENCE, Server, command
from tests.harness.site import Site, module
from tests.harness.slow import Crowd
from tests.harness.wire import Malformed, Reply, Wire

__all__ = [
    "APPS",
    "CLASSES",
    "CLOSE",
    "EVENT_LOOPS",
    "GREEN",
    "GREEN_CLASSES",
    "KINDS",
    "REFERENCE",
    "THREAD_CLASSES",
    "WSGI_KINDS",
    "Crowd",
    "Load",
    "Malformed",
    "Reply",
    "Server",
    "Site",
    "Wire",
    "at_once",
    "command",
    "configured",
    "each",
    "module",
    "room",
    "until",
]
