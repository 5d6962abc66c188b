"""Load whose every request has an id of its own, so that afterwards one can tell what became of each."""

from __future__ import annotations

import collections
import hashlib
import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.harness.load import PAUSE, Clients
from tests.harness.transports import announces_end
from tests.harness.wire import Address, Reply, Silent, Wire, request


def calls(ledger: Path) -> collections.Counter[str]:
    """How often the application was called for each id."""
    text = ledger.read_text() if ledger.exists() else ""
    return collections.Counter(line.split()[0] for line in text.splitlines())


def ran(ledger: Path, id_: str) -> int:
    """The pid of the worker that was called for this request; 0: none was yet."""
    text = ledger.read_text() if ledger.exists() else ""
    return next((int(pid) for name, pid in map(str.split, text.splitlines()) if name == id_), 0)


@dataclass
class Outcomes:
    answered: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    """Cleanly, on a connection that had been answered before, and before the first byte of the answer."""
    lost: list[str] = field(default_factory=list)
    """Any other end of a connection."""
    refused: int = 0
    slowest: float = 0.0
    """Seconds from sending to the answer, of requests that were sent alone."""
    wrong: list[str] = field(default_factory=list)
    """Answers to another request, or that are no 200."""

    def count(self) -> int:
        return len(self.answered)

    def check(self, ledger: Path, *, lost: int = 0) -> None:
        """None served twice; each answer from one call; no more than `lost` requests lost."""
        called = calls(ledger)
        assert not self.wrong, self.wrong[:5]
        assert not [(id_, count) for id_, count in called.items() if count > 1 and id_ != "-"]
        assert not [id_ for id_ in self.answered if called[id_] != 1]
        assert len(set(self.answered)) == len(self.answered)
        failed = self.lost + [id_ for id_ in self.ended if called[id_]]
        assert len(failed) <= lost, (len(failed), lost, failed[:20])


class Marked(Clients[Outcomes]):
    """`clients` threads that ask `/?id=…&s=…`, each on a connection of its own, `depth` requests at a time.

    `connect` opens a connection, of any transport. Every third request has a body. `requests` is how many each client
    makes (in all), None: until `stop`. Ids are counted from `first`.
    """

    def __init__(
        self,
        address: Address,
        *,
        clients: int = 16,
        seconds: float = 0.003,
        depth: int = 1,
        requests: int | None = None,
        body: int = 1000,
        seed: int = 0,
        first: int = 0,
        timeout: float = 20.0,
        pause: float = PAUSE,
        connect: Callable[..., Wire] = Wire,
    ) -> None:
        self.address = address
        self._connect = connect
        self.pause = pause
        self.seconds = seconds
        self.depth = depth
        self.requests = requests
        self.body = body
        self.first = first
        self.timeout = timeout
        self.outcomes = Outcomes()
        self.left = False
        each = [partial(self._client, nr, random.Random(seed * 1000 + nr)) for nr in range(clients)]
        super().__init__(self.outcomes, each)

    def answers(self) -> int:
        return self.outcomes.count()

    def leaving(self) -> None:
        """From now on the server may refuse connections, and end those it has between two requests."""
        self.left = True

    def _client(self, nr: int, dice: random.Random) -> None:
        ids = (f"{nr}.{count}" for count in itertools.count(self.first))
        left = self.requests
        while not self._stop.is_set() and left != 0:
            try:
                wire = self._connect(self.address, timeout=self.timeout)
            except OSError as error:
                with self._lock:
                    if self.left:
                        self.outcomes.refused += 1
                        return
                    self.outcomes.lost.append(f"connect: {error!r}")
                self._stop.wait(self.pause)  # the worker may have been killed in the midst of a handshake
                continue
            fresh = True
            with wire:
                while not self._stop.is_set() and left != 0:
                    count = self.depth if left is None else min(left, self.depth)
                    if left is not None:
                        left -= count
                    if not self._ask(wire, [next(ids) for _ in range(count)], dice, fresh):
                        break
                    fresh = False
                    self._stop.wait(self.pause)

    def _ask(self, wire: Wire, ids: list[str], dice: random.Random, fresh: bool) -> bool:
        """Asks so many at once; says whether the connection goes on."""
        sent: list[tuple[str, bytes]] = []
        parts = []
        for id_ in ids:
            body = dice.randbytes(dice.randrange(1, self.body + 1)) if dice.random() < 1 / 3 else b""
            sent.append((id_, body))
            seconds = dice.uniform(0, 2 * self.seconds)
            method = "POST" if body else "GET"
            parts.append(request(method, f"/?id={id_}&s={seconds:.4f}", (), body or None))
        goes_on = False
        began = time.monotonic()
        while sent:
            try:
                if parts:
                    wire.send(*parts)
                    parts = []
                reply = wire.reply()
            except (OSError, AssertionError) as error:
                self._ended([id_ for id_, _ in sent], error, fresh)
                return False
            (id_, body), *sent = sent
            if self.depth == 1:
                self.outcomes.slowest = max(self.outcomes.slowest, time.monotonic() - began)
            self._judge(id_, body, reply)
            fresh, goes_on = False, not announces_end(wire, reply)
            if not goes_on and sent:
                # A draining worker ends the connection in order; what it has not begun is the client's to repeat.
                self._ended([id_ for id_, _ in sent], Silent("announced"), False)
                return False
        return goes_on

    def _judge(self, id_: str, body: bytes, reply: Reply) -> None:
        told = reply.json() if reply.status == 200 else {}
        good = told.get("id") == id_ and told.get("sha256") == hashlib.sha256(body).hexdigest()
        with self._lock:
            if good:
                self.outcomes.answered.append(id_)
            else:
                self.outcomes.wrong.append(f"{id_}: {reply.status} {reply.body[:200]!r}")

    def _ended(self, ids: list[str], error: BaseException, fresh: bool) -> None:
        clean = isinstance(error, Silent) and not fresh
        with self._lock:
            if self.left and fresh and isinstance(error, (Silent, ConnectionError)):
                self.outcomes.refused += 1
            elif clean:
                self.outcomes.ended += ids
            elif isinstance(error, TimeoutError):
                self.outcomes.wrong.append(f"{ids}: no answer in {self.timeout:g} s")
            else:
                self.outcomes.lost += [f"{id_}: {error!r}" for id_ in ids]
