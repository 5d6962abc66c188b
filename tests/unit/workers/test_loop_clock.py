"""How a loop in Python waits: as `selectors.EpollSelector` does, event by event."""

from __future__ import annotations

import mmap
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from tricorn._core import Core, LoopClock

from tests.harness.core import OPTIONS, PAGE

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


@pytest.fixture
def clock() -> Iterator[LoopClock]:
    core = Core([], OPTIONS | {"hub": True}, mmap.mmap(-1, PAGE))
    yield LoopClock(core)
    core.close()


@pytest.fixture
def selector() -> Iterator[Any]:
    with selectors.EpollSelector() as made:
        yield made


@pytest.fixture
def select(clock: LoopClock, selector: Any) -> Callable[..., list[tuple[Any, int]]]:
    return clock.select(selector.fileno(), selector._fd_to_key)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


@pytest.mark.parametrize("wanted", [READ, WRITE, READ | WRITE])
@pytest.mark.parametrize("state", ["idle", "with bytes", "half-closed", "closed", "full"])
def test_it_tells_what_the_selector_itself_would(
    select: Any, selector: Any, ends: tuple[socket.socket, socket.socket], wanted: int, state: str
) -> None:
    left, right = ends
    selector.register(left, wanted, data="left")
    if state == "with bytes":
        right.send(b"x")
    elif state == "half-closed":
        right.shutdown(socket.SHUT_WR)
    elif state == "closed":
        right.close()
    elif state == "full":
        left.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                left.send(bytes(65536))
    assert select(0) == selector.select(0)
    assert select(timeout=-1.0) == selector.select(-1)


def test_a_descriptor_that_the_selector_forgot_is_none(
    select: Any, selector: Any, ends: tuple[socket.socket, socket.socket]
) -> None:
    left, right = ends
    selector.register(left, READ)
    right.send(b"x")
    assert len(select(0)) == 1
    del selector._fd_to_key[left.fileno()]
    assert select(0) == []


def test_a_wait_lasts_as_long_as_it_is_to(select: Any) -> None:
    begun = time.monotonic()
    assert select(0.0201) == []
    assert time.monotonic() - begun >= 0.0201


def test_a_wait_without_end_ends_with_an_event(
    select: Any, selector: Any, ends: tuple[socket.socket, socket.socket]
) -> None:
    """The GIL is free meanwhile, or the thread would not come to send it."""
    left, right = ends
    selector.register(left, READ)
    thread = threading.Thread(target=right.send, args=(b"x",))
    thread.start()
    assert [key.fileobj for key, _ in select(None)] == [left]
    thread.join()


@pytest.mark.parametrize("raises", [False, True])
def test_a_signal_is_handled_while_the_loop_waits(select: Any, raises: bool) -> None:
    """What its handler raises comes out of the wait, which otherwise brings nothing."""
    handled = threading.Event()

    def handle(*_: object) -> None:
        handled.set()
        if raises:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        if raises:
            with pytest.raises(KeyboardInterrupt):
                select(None)
        else:
            assert select(None) == []
        assert handled.is_set()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_epoll_that_is_closed_is_an_error(select: Any, selector: Any) -> None:
    selector.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        select(0)


def test_another_selector_is_asked_itself(clock: LoopClock) -> None:
    asked: list[object] = []
    wait = clock.around(lambda timeout: asked.append(timeout) or "done")
    assert [wait(1.5), wait(None)] == ["done"] * 2
    assert asked == [1.5, None]
