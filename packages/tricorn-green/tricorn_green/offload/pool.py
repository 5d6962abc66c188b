"""Native threads that run calls in the order in which they came, and lines that call one after another.

    Pool     up to `size` threads, made when they are needed; those that have been idle for a while end
    Pin      one thread, for what must not change it (an object, a library)
    Lane     calls of one object: the next is put into the pool when the last has ended, so that none holds a thread

A thread here is a real one, also in a process whose standard library is patched: it takes no lock and wakes no waiter
that may belong to a hub. After a fork the child has none of the threads, so that each pool begins anew there.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from tricorn.record import Record
from tricorn.unpatched import _thread, os, time
from tricorn_green.offload import board

IDLE_SECONDS = 30.0
"""After which a thread ends that has nothing to do."""


class Job(Protocol):
    def run(self) -> object:
        """On a thread of the pool. Raises nothing."""


class Line(Protocol):
    """Queue in which calls wait for their turn."""

    @property
    def pool(self) -> Pool: ...

    def submit(self, job: Job) -> bool:
        """Queues a job; False if there is no thread, and none can be started."""


class Figures(Record):
    """Figures of one pool."""

    size: int
    threads: int
    busy: int
    waiting: int
    """Jobs that wait for a thread; those that wait for their object are not among them."""
    oldest: float
    """Seconds that the first of them has waited."""


class Pool:
    def __init__(self, size: int, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self.size = size
        self._idle_seconds = idle_seconds
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        # Reentrant: a finalizer or a signal handler may come here in the middle of it.
        self._lock = _thread.RLock()
        self._jobs: deque[tuple[float, Job]] = deque()
        self._parked: list[_thread.LockType] = []
        self._threads = self._busy = self._lent = 0
        self._is_closed = False

    @property
    def pool(self) -> Pool:
        return self

    def submit(self, job: Job) -> bool:
        wakes: _thread.LockType | None = None
        with self._lock:
            self._jobs.append((time.monotonic(), job))
            if self._parked:
                wakes = self._parked.pop()
            elif self._threads < self.size + self._lent and not self._start() and not self._threads:
                self._jobs.pop()
                return False
        if wakes is not None:
            wakes.release()
        return True

    def close(self) -> None:
        """Its threads end when there is nothing left to do."""
        with self._lock:
            self._is_closed = True
            parked, self._parked = self._parked, []
        for lock in parked:
            lock.release()

    def lend(self) -> None:
        """One of its threads waits for the caller: another may take its place."""
        with self._lock:
            self._lent += 1
            if self._jobs and not self._parked:
                self._start()

    def take_back(self) -> None:
        with self._lock:
            self._lent -= 1

    def figures(self) -> Figures:
        with self._lock:
            oldest = time.monotonic() - self._jobs[0][0] if self._jobs else 0.0
            return Figures(self.size, self._threads, self._busy, len(self._jobs), oldest)

    def _start(self) -> bool:
        try:
            _thread.start_new_thread(self._work, ())
        except RuntimeError:  # a limit of the system, or the interpreter is about to end
            return False
        self._count(1)
        return True

    def _count(self, change: int) -> None:
        self._threads += change
        board.page().offload_threads(change)

    def _work(self) -> None:
        park = _thread.allocate_lock()
        park.acquire()
        while (job := self._next(park)) is not None:
            try:
                job.run()
            finally:
                del job  # what it holds must not live until the next one comes
                with self._lock:
                    self._busy -= 1

    def _next(self, park: _thread.LockType) -> Job | None:
        """The next job; None if the thread is to end."""
        while True:
            with self._lock:
                is_one_too_many = self._threads > self.size + self._lent
                if self._jobs and not is_one_too_many:
                    self._busy += 1
                    return self._jobs.popleft()[1]
                if self._is_closed or is_one_too_many:
                    self._count(-1)
                    return None
                self._parked.append(park)
            if park.acquire(timeout=self._idle_seconds):
                continue
            with self._lock:
                if park in self._parked:
                    self._parked.remove(park)
                    self._count(-1)
                    return None
            park.acquire()  # it was woken just then


class Pin(Pool):
    """One thread, and always the same one: for what must not be called by another."""

    def __init__(self) -> None:
        super().__init__(1, idle_seconds=-1)

    def lend(self) -> None:
        """There is no other thread that could take its place."""

    def take_back(self) -> None:
        """See `lend`."""


class Lane:
    """Calls of one object, each on any thread of the pool, one at a time."""

    def __init__(self, key: int, owner: object, pool: Pool) -> None:
        self._key = key
        self._owner = owner
        """Held while calls are under way, so that no other object gets its identity."""
        self._pool = pool
        self._jobs: deque[Job] = deque()
        self._current: Job | None = None

    @classmethod
    def of(cls, owner: object, pool: Pool) -> Lane:
        return _lanes.get(id(owner)) or cls(id(owner), owner, pool)

    @property
    def pool(self) -> Pool:
        return self._pool

    def submit(self, job: Job) -> bool:
        with _lanes_lock:
            lane = _lanes.setdefault(self._key, self)
            if lane is not self:  # it was made meanwhile
                return lane.submit(job)
            if self._current is not None:
                self._jobs.append(job)
                return True
            self._current = job
            if self._pool.submit(self):
                return True
            self._current = None
            del _lanes[self._key]
            return False

    def run(self) -> None:
        """On a thread: the first of its jobs. The next one takes its turn behind those of other objects."""
        job = self._current
        try:
            if job is not None:
                job.run()
        finally:
            with _lanes_lock:
                self._current = self._jobs.popleft() if self._jobs else None
                if self._current is None:
                    _lanes.pop(self._key, None)
                else:
                    self._pool.submit(self)


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
_lanes: dict[int, Lane] = {}
"""Lanes of objects with calls under way."""
_lanes_lock = _thread.RLock()


def pools() -> Iterator[Pool]:
    yield from tuple(_pools)


def begin_anew() -> None:
    """Resets the pools. No thread of them may be at work: in a forked child, or right after patching."""
    global _lanes_lock  # a thread that is not here may have held it
    _lanes_lock = _thread.RLock()
    _lanes.clear()
    for pool in tuple(_pools):
        pool._reset()


os.register_at_fork(after_in_child=begin_anew)
