"""Thousands of requests that were good once: none crashes, hangs or leaks anything.

TRICORN_MUTANTS says how many, TRICORN_SEED which; `make fuzz` sends a hundred thousand new ones.
"""

from __future__ import annotations

import os
import random
import selectors
import socket
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.attacks.bad_requests import ALL, get, post
from tests.attacks.conftest import guarded
from tests.conftest import Pool
from tests.harness import REFERENCE, Server, each, proc, until
from tests.harness.deadline import PATIENCE
from tests.harness.wire import chunked, drain

REQUESTS = int(os.environ.get("TRICORN_MUTANTS", "20000"))
SEED = int(os.environ.get("TRICORN_SEED", "20261121"))
STUCK = 200  # one in so many does not say that it has finished, so that only the server's deadline can end it
PARALLEL = 128
SILENCE = 20.0  # seconds in which none of them ends: longer than any deadline of the server

CORPUS = [
    get(),
    get(b"X-A: b", b"Accept: */*", b"Cookie: a=1; b=2"),
    get(line=b"HEAD /stream?count=3&size=9 HTTP/1.1"),
    get(line=b"GET http://t/echo?x=%41 HTTP/1.1"),
    get(line=b"OPTIONS * HTTP/1.1"),
    get(b"Connection: keep-alive", line=b"GET /hello HTTP/1.0"),
    post(b"Content-Type: a/b", b"Content-Length: 10", body=b"0123456789"),
    post(b"Content-Type: a/b", b"Transfer-Encoding: chunked", body=chunked([b"abc", b"defgh"])),
    post(b"Content-Type: a/b", b"Transfer-Encoding: chunked", body=b"3;a=b\r\nabc\r\n0\r\nX-T: u\r\n\r\n"),
    post(b"Expect: 100-continue", b"Content-Type: a/b", b"Content-Length: 2", body=b"ok"),
    *(bad.sent for bad in ALL if len(bad.sent) < 400),
]
SPECIAL = [
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\0",
    b" ",
    b"\t",
    b":",
    b";",
    b",",
    b"\xff",
    b"0",
    b"-1",
    b"chunked",
    b'"',
]


def mutants(seed: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    while True:
        data = bytearray(rng.choice(CORPUS))
        for _ in range(rng.randint(0, 3)):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(6):
                case 0:
                    data[at : at + 1] = bytes([rng.randrange(256)])
                case 1:
                    data[at:at] = rng.choice(SPECIAL)
                case 2:
                    del data[at : at + rng.randint(1, 8)]
                case 3:
                    end = at + rng.randint(1, 20)
                    data[at:at] = data[at:end] * rng.randint(1, 3)
                case 4:
                    data[at:] = rng.choice(CORPUS)[at:]
                case _:
                    data[at : at + 2] = data[at : at + 2][::-1]
        yield bytes(data)


class Mutant:
    """One connection with one mutant, and whatever the server makes of it."""

    def __init__(self, server: Server, data: bytes, *, finishes: bool) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(server.address)
        try:
            self.sock.sendall(data)
            if finishes:
                self.sock.shutdown(socket.SHUT_WR)
        except ConnectionError:
            pass  # refused before its end
        self.sock.setblocking(False)
        self.answer = b""

    def listen(self) -> bool:
        """Reads what is there; says whether the connection is over."""
        read, is_over = drain(self.sock)
        self.answer += read
        return is_over


def attack(server: Server) -> Counter[str]:
    """Sends the mutants, some at a time, and counts how they were answered."""
    source = mutants(SEED)
    answers: Counter[str] = Counter()
    running: set[Mutant] = set()
    left = REQUESTS
    moved = time.monotonic()
    with selectors.DefaultSelector() as selector:
        while left or running:
            assert time.monotonic() - moved < SILENCE, f"{left} mutants left, {len(running)} connections hang"
            while left and len(running) < PARALLEL:
                mutant = Mutant(server, next(source), finishes=left % STUCK != 0)
                left -= 1
                running.add(mutant)
                selector.register(mutant.sock, selectors.EVENT_READ, mutant)
            for key, _ in selector.select(0.05):
                mutant = key.data
                if mutant.listen():
                    answers[mutant.answer[9:12].decode()] += 1
                    selector.unregister(mutant.sock)
                    mutant.sock.close()
                    running.discard(mutant)
                    moved = time.monotonic()
    return answers


@pytest.mark.parametrize("worker_class", each("gthread", "asgi"))
@pytest.mark.timeout(300)
def test_mutated_requests_disturb_no_other_client(pool: Pool, worker_class: str) -> None:
    if REFERENCE:
        pytest.skip("it is slow, and what it does with them is not the question here")
    # Over a unix socket, which does not run out of ports.
    server = guarded(pool, worker_class, transport="unix", keep_alive=1)
    assert server.get("/hello").status == 200
    worker = server.worker_pid()
    descriptors, memory = proc.descriptors(worker), proc.private_bytes(worker)
    answers = attack(server)
    assert answers["200"] > REQUESTS / 100, answers
    assert answers["400"] > REQUESTS / 4, answers
    assert not server.log.matching("AssertionError"), "the validator saw the server break PEP 3333"
    assert server.worker_pid() == worker, server.log.text[-2000:]
    assert server.get("/hello").body == b"Hello\n"
    until(lambda: proc.descriptors(worker) <= descriptors, "every descriptor is given back")
    assert proc.private_bytes(worker) - memory < 32 << 20
    assert not server.log.matching("panicked")
