"""The lanes of the suite: which tests wait for the night, and which have the processors to themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import lanes
from tests.lanes import DOCTOR_TABLE, FRAMEWORKS, INTERPRETERS

TESTS = Path(lanes.__file__).parent


@pytest.mark.parametrize(
    "file",
    [
        *lanes.NEEDS_CPU,
        *lanes.NIGHTLY,
        *lanes.EVENTLET_ON_PUSH,
        *lanes.BY_UNIX_SOCKET_ON_PUSH,
        DOCTOR_TABLE,
        INTERPRETERS,
        FRAMEWORKS,
    ],
)
def test_lanes_name_rooms_and_files_that_exist(file: str) -> None:
    assert (TESTS / file).exists()


@pytest.mark.parametrize(
    ("file", "parameters", "marks"),
    [
        ("integration/test_signals.py", {"worker_class": "gevent"}, set()),
        ("integration/test_signals.py", {"worker_class": "eventlet"}, {"nightly"}),
        ("integration/test_signals.py", {"server": "eventlet-unix"}, {"nightly"}),
        ("conformance/rfc9112/test_chunked.py", {"server": "eventlet-unix"}, set()),
        ("integration/test_one_queue.py", {"worker_class": "sync"}, {"needs_cpu"}),
        ("integration/test_one_queue.py", {"worker_class": "eventlet"}, {"needs_cpu", "nightly"}),
        ("integration/doctor/test_blame.py", {}, {"needs_cpu"}),
        (DOCTOR_TABLE, {"worker_class": "gevent", "name": "sleeps"}, {"needs_cpu"}),
        (DOCTOR_TABLE, {"worker_class": "tornado", "name": "flushes"}, {"needs_cpu", "nightly"}),
        (DOCTOR_TABLE, {}, {"needs_cpu"}),
        ("storms/test_storms.py", {"seed": 1}, {"nightly"}),
        ("conformance/wsgi_pep3333/test_close.py", {"server": "sync-tcp"}, set()),
        ("conformance/wsgi_pep3333/test_close.py", {"server": "sync-unix"}, {"nightly"}),
        ("conformance/wsgi_pep3333/test_environ.py", {"server": "sync-unix"}, set()),
        ("conformance/rfc9110/test_methods.py", {"server": "asgi-unix"}, {"nightly"}),
        ("conformance/asgi3/test_send.py", {"server": "uvloop-unix"}, set()),
        ("conformance/rfc6455/test_text.py", {"server": "unix"}, {"nightly"}),
        ("conformance/rfc6455/test_text.py", {"server": "h2"}, set()),
        ("conformance/asgi_websocket/test_flow.py", {"tcp_server": "h2tls"}, {"nightly"}),
        ("conformance/wsgi_pep3333/test_close.py", {"server": "sync-h2tls"}, set()),
        ("conformance/wsgi_pep3333/test_close.py", {"server": "eventlet-h2"}, {"nightly"}),
        ("conformance/wsgi_pep3333/test_close.py", {"tcp_server": "eventlet"}, set()),
        (FRAMEWORKS, {"framework": "django", "server": "gthread"}, set()),
        (FRAMEWORKS, {"framework": "flask", "server": "gevent"}, set()),
        (FRAMEWORKS, {"framework": "django", "server": "sync"}, {"nightly"}),
    ],
)
def test_lanes_of_a_test_are_those_of_its_file_and_class(
    file: str, parameters: dict[str, object], marks: set[str]
) -> None:
    assert lanes.lanes(file, parameters) == marks


@pytest.mark.parametrize(("identifier", "waits"), [("3.13", False), ("static", False), ("3.10", True)])
def test_lanes_leave_most_interpreters_of_the_doctor_to_the_night(identifier: str, waits: bool) -> None:
    assert ("nightly" in lanes.lanes(INTERPRETERS, {"python": 13}, identifier)) == waits
