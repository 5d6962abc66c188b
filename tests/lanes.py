"""Which tests run when: the marks `nightly` and `needs_cpu`, in one place.

`make test` leaves out `nightly`; `make test-all` runs everything. Each runs the marked `needs_cpu` last, in two
processes (tests/run.py), so that the suite itself does not take away the processor time that they measure.
"""

from __future__ import annotations

from collections.abc import Mapping

NEEDS_CPU = (
    "integration/doctor",
    "integration/test_one_queue.py",
    "integration/test_load_report.py",
    "integration/test_offload.py",
    "integration/test_loop_time.py",
    "integration/test_call_time.py",
    "integration/test_loop_disconnects.py",
    "integration/test_waits.py",
    "integration/test_wake_ups.py",
    "integration/test_tune.py",
    "integration/test_profile.py",
    "integration/test_slow_requests.py",
    "integration/test_stalls.py",
    "examples/test_kafka_flush.py",
    "examples/test_pg_green.py",
    "healthy",
)
"""Rooms and files of tests about processor time, wake-ups or memory while a server is busy: serial lane."""

NIGHTLY = ("storms", "healthy", "cluster", "integration/test_benches.py")
"""Rooms and files in which several servers, hosts or commands compete for seconds, whatever changed."""

EVENTLET_ON_PUSH = (
    "unit",
    "conformance",
    "attacks",
    "compat/test_worker_classes.py",
    "integration/test_green_promises.py",
)
"""One room of each promise keeps its eventlet column in `make test`; the others have it in `make test-all`."""

DOCTOR_TABLE = "integration/doctor/test_table.py"
DOCTOR_CLASSES_ON_PUSH = ("gevent", "asgi-asyncio")
INTERPRETERS = "integration/doctor/test_interpreters.py"
INTERPRETERS_ON_PUSH = ("3.13", "static")
"""One of each way in which frames are found: with a libpython and without."""

CONFORMANCE = "conformance"
BY_UNIX_SOCKET = ("sync-unix", "gthread-unix", "asgi-unix", "tornado-unix", "unix")
"""Servers of the conformance suites that differ from another one only by the socket."""
BY_HTTP2 = ("h2", "h2tls")
BY_HTTP2_ON_PUSH = ("gthread-h2", "sync-h2tls", "asgi-h2", "asyncio-h2", "uvloop-h2tls", "h2")
"""`make test` asks a class of WSGI and one of ASGI over HTTP/2, in the clear and over TLS, and WebSockets in the clear;
`make test-all` asks each."""
BY_VARS = ("uwsgi", "fastcgi")
BY_VARS_ON_PUSH = ("gthread-fastcgi", "asyncio-uwsgi")
"""`make test` asks one class of each interface by a front end's protocol."""
BY_UNIX_SOCKET_ON_PUSH = ("conformance/wsgi_pep3333/test_environ.py", "conformance/rfc6455/test_control.py")
"""What differs by the socket is the environ's addresses. `make test` asks one file of each suite both ways."""

H2SPEC = "conformance/rfc9113/test_h2spec.py"
H2SPEC_ON_PUSH = {"worker_class": "gthread", "transport": "cleartext"}
"""What it tries is the core's affair, the same for each class."""

FRAMEWORKS = "frameworks/test_frameworks.py"
FRAMEWORK_ON_PUSH = "flask"
CLASS_ON_PUSH = "gthread"
"""Of five frameworks in four classes `make test` has a row and a column."""


def lanes(file: str, parameters: Mapping[str, object], identifier: str = "") -> set[str]:
    """The marks of a test, by its file below tests/, the parameters of its case and their identifier."""
    marks = set()
    if _is_below(file, NEEDS_CPU):
        marks.add("needs_cpu")
    if _is_below(file, NIGHTLY) or _is_for_the_night(file, parameters, identifier):
        marks.add("nightly")
    return marks


def _is_for_the_night(file: str, parameters: Mapping[str, object], identifier: str) -> bool:
    if file == DOCTOR_TABLE and "worker_class" in parameters:
        return parameters["worker_class"] not in DOCTOR_CLASSES_ON_PUSH
    if file == INTERPRETERS and "python" in parameters:
        return identifier not in INTERPRETERS_ON_PUSH
    if file == H2SPEC:
        return dict(parameters) != H2SPEC_ON_PUSH
    server = str(parameters.get("server", parameters.get("tcp_server", "")))
    if _is_below(file, (CONFORMANCE,)) and server.rpartition("-")[2] in BY_HTTP2:
        return server not in BY_HTTP2_ON_PUSH
    if _is_below(file, (CONFORMANCE,)) and server.rpartition("-")[2] in BY_VARS:
        return server not in BY_VARS_ON_PUSH
    if _is_below(file, (CONFORMANCE,)) and parameters.get("server") in BY_UNIX_SOCKET:
        return file not in BY_UNIX_SOCKET_ON_PUSH
    if file == FRAMEWORKS and parameters["framework"] != FRAMEWORK_ON_PUSH and parameters["server"] != CLASS_ON_PUSH:
        return True
    has_eventlet = any(str(value).partition("-")[0] == "eventlet" for value in parameters.values())
    return has_eventlet and not _is_below(file, EVENTLET_ON_PUSH)


def _is_below(file: str, rooms: tuple[str, ...]) -> bool:
    return any(file == room or file.startswith(f"{room}/") for room in rooms)
