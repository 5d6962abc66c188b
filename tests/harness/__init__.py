"""Real processes, real sockets: what the suites need to start a server and to talk to it byte by byte."""

from __future__ import annotations

from tests.harness.cases import with_each
from tests.harness.classes import (
    ALL_CLASSES,
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
from tests.harness.deadline import elapse, until
from tests.harness.load import CLOSE, Load
from tests.harness.server import APPS, NO_BOOT, REFERENCE, Server, command
from tests.harness.site import Site, module
from tests.harness.slow import Crowd
from tests.harness.wire import Malformed, Reply, Wire

__all__ = [
    "ALL_CLASSES",
    "APPS",
    "CLASSES",
    "CLOSE",
    "EVENT_LOOPS",
    "GREEN",
    "GREEN_CLASSES",
    "KINDS",
    "NO_BOOT",
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
    "elapse",
    "module",
    "room",
    "until",
    "with_each",
]
