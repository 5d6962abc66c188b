"""Python's part of the watchdog, in this process and with signals that the test sends itself."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
import tricorn
from tricorn import errors
from tricorn.workers import watch
from tricorn.workers.messages import Decoder, StackLines

pytestmark = pytest.mark.skipif(watch.STACK_SIGNAL is None, reason="no realtime signals here")
assert watch.STACK_SIGNAL is not None
assert watch.LATE_SIGNAL is not None


class Core:
    """Says what the test wants it to say."""

    def __init__(self, limit: float) -> None:
        self.request_timeout = limit
        self.late: str | None = None
        self.errors: dict[str, type[BaseException]] = {}

    def late_call(self) -> type[BaseException] | None:
        return None if self.late is None else self.errors[self.late]

    def raise_when_late(self, late: type[BaseException], cancelled: type[BaseException]) -> None:
        self.errors = {"late": late, "cancelled": cancelled}


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = signal.getsignal(watch.LATE_SIGNAL)
    yield
    signal.signal(watch.LATE_SIGNAL, before)
    faulthandler.unregister(watch.STACK_SIGNAL)


def test_the_signal_writes_the_stack_of_the_thread_that_gets_it() -> None:
    read_end, write_end = os.pipe()
    watch.enable(write_end)
    signal.pthread_kill(threading.get_ident(), watch.STACK_SIGNAL)
    (message,) = Decoder().feed(os.read(read_end, 65536))
    assert isinstance(message, StackLines)
    assert "test_the_signal_writes_the_stack_of_the_thread_that_gets_it" in message.lines[0]
    os.close(read_end)
    os.close(write_end)


def test_a_late_call_gets_the_exception_with_its_limit() -> None:
    core = Core(1.5)
    watch.listen(core)  # type: ignore[arg-type]
    core.late = "late"
    with pytest.raises(tricorn.RequestTimeout, match=r"request_timeout allows \(1\.5 s\)") as caught:
        signal.raise_signal(watch.LATE_SIGNAL)
    assert caught.value.limit == 1.5
    assert not isinstance(caught.value, tricorn.RequestCancelled)


def test_a_call_that_is_cancelled_gets_an_exception_of_its_own() -> None:
    core = Core(1.5)
    watch.listen(core)  # type: ignore[arg-type]
    core.late = "cancelled"
    with pytest.raises(tricorn.RequestTimeout, match=r"^the request was cancelled by an operator$") as caught:
        signal.raise_signal(watch.LATE_SIGNAL)
    assert type(caught.value) is tricorn.RequestCancelled
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (tricorn.RequestCancelled, str(caught.value))


def test_a_signal_that_comes_too_late_hits_nobody() -> None:
    watch.listen(Core(1.5))  # type: ignore[arg-type]
    signal.raise_signal(watch.LATE_SIGNAL)


def test_without_a_limit_nothing_is_installed() -> None:
    before = signal.getsignal(watch.LATE_SIGNAL)
    core = Core(0.0)
    watch.listen(core)  # type: ignore[arg-type]
    assert signal.getsignal(watch.LATE_SIGNAL) == before
    assert core.errors == {}


def test_a_handler_of_mistakes_does_not_catch_it() -> None:
    assert issubclass(tricorn.RequestTimeout, BaseException)
    assert not issubclass(tricorn.RequestTimeout, Exception)


def test_the_class_that_is_raised_needs_no_arguments_and_can_be_sent_elsewhere() -> None:
    kind = errors.request_timeout(2.0)
    assert issubclass(kind, tricorn.RequestTimeout)
    assert (kind.__name__, kind.__module__) == ("RequestTimeout", "tricorn.errors")
    copy = pickle.loads(pickle.dumps(kind()))
    assert (type(copy), copy.limit) == (tricorn.RequestTimeout, 2.0)
    assert tricorn.RequestTimeout().limit == 0.0


def test_importing_tricorn_imports_nothing_else_of_it() -> None:
    code = "import sys, tricorn; print([name for name in sys.modules if name.startswith('tricorn.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_another_name_is_missed_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="'tricorn' has no attribute 'Nothing'"):
        _ = tricorn.Nothing
