"""A worker in this process, around a core that only takes notes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tricorn import log, workers
from tricorn.config.command_line import read_arguments
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.metrics.scoreboard import LEDGER_BYTES
from tricorn.workers import registry, versions
from tricorn.workers.application import Application
from tricorn.workers.base import Worker
from tricorn.workers.messages import Decoder, Message
from tricorn.workers.once import Once
from tricorn.workers.spec import WorkerFds, WorkerSpec

TOUCHED = ("TERM", "INT", "QUIT", "ABRT", "USR1", "USR2", "HUP", "WINCH", "TTIN", "TTOU")


@dataclass
class Core:
    """Notes what it is told; `script` is what happens while it serves."""

    notes: list[str] = field(default_factory=list)
    options: dict[str, object] = field(default_factory=dict)
    script: Callable[[], None] = lambda: None
    wakeup_fd: int = -1
    request_timeout: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def guard_forks(self) -> None:
        pass

    def start(self) -> None:
        self.note("start")

    def serve(self, gateway: object) -> None:
        self.note("serve")
        self.script()

    def wait(self) -> None:
        self.note("wait")
        self.over.wait(5)

    def drain(self) -> None:
        self.note("drain")
        self.over.set()

    def end_calls(self) -> bool:
        return False

    def close_streams(self, lead: float, spread: float, rest: float) -> None: ...

    def stop(self) -> None:
        self.note("stop")
        self.over.set()

    def close(self) -> None:
        self.note("close")

    def reopen_logs(self) -> None:
        self.note("reopen_logs")


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Iterator[Core]:
    made = Core()
    _, made.wakeup_fd = pipe = os.pipe()
    os.set_blocking(made.wakeup_fd, False)

    def make(listeners: list[int], options: dict[str, object], page: memoryview) -> Core:
        made.options = dict(options)
        return made

    fake: Any = ModuleType("tricorn._core")
    fake.scoreboard_bytes, fake.Core, fake.WsgiGateway = lambda threads: 64, make, lambda *args: args
    for other in ("AsgiGateway", "CallGateway", "GreenServer", "LoopClock", "LoopServer", "TransportGateway"):
        setattr(fake, other, object)
    fake.CallSoon = lambda event_loop: SimpleNamespace(call_soon=event_loop.call_soon)
    fake.SignalHandler = lambda method: method
    fake.check_access_log_format = fake.check_upload_dir = fake.upload_dir_in_memory = lambda text: None
    fake.check_tls = fake.publish_tls = fake.suite_names = fake.tls_page_bytes = None
    fake.enlarge_signal_stack = lambda: False
    fake.trim_heap = fake.adopt_orphans = None
    monkeypatch.setitem(sys.modules, "tricorn._core", fake)
    own = forget_native()
    numbers = [signal.Signals[f"SIG{name}"] for name in TOUCHED]
    before = {number: signal.getsignal(number) for number in numbers}
    yield made
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)
    forget_native()
    for name, module in own.items():
        sys.modules[f"tricorn.workers.{name}"] = vars(workers)[name] = module
    for end in pipe:
        os.close(end)


def forget_native() -> dict[str, ModuleType]:
    """Its modules hold on to the core that they were imported with. Returns those that were imported."""
    found = {}
    for name in ("native", "core_options"):
        vars(workers).pop(name, None)
        if module := sys.modules.pop(f"tricorn.workers.{name}", None):
            found[name] = module
    return found


@dataclass
class Arbiter:
    """The other ends of a worker's pipes, and the hooks it is to call."""

    messages: int
    worker: Worker
    notes: list[str]

    def heard(self) -> list[Message]:
        return Decoder().feed(os.read(self.messages, 4096))


@pytest.fixture
def hire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Arbiter]]:
    (tmp_path / "life_app.py").write_text("def application(environ, start_response): ...\n")
    (tmp_path / "life_broken.py").write_text("1 / 0\n")
    (tmp_path / "life_exits.py").write_text("import sys; sys.exit(7)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(versions, "C_LIBRARIES", {})  # what other tests have imported into this process is no worker's
    ends: list[int] = []
    unclosed: list[Once] = []
    made: list[Worker] = []

    def make(
        app: str = "life_app",
        argv: str = "",
        worker_class: str = "sync",
        stand_in: bool = False,
        siblings: bool = False,
        **hooks: Any,
    ) -> Arbiter:
        messages, life, once = os.pipe(), os.pipe(), Once()
        unclosed.append(once)
        ends.extend((*messages, *life))
        in_file = Layer({name: Raw(hook, "gunicorn.conf.py") for name, hook in hooks.items()})
        config = resolve([in_file, read_arguments([*argv.split(), app])])
        spec = WorkerSpec(
            server="the server",
            config=config,
            log=log.make(config),
            app=Application(config),
            age=7,
            sockets=[],
            page=memoryview(bytearray(4096)),
            pages=memoryview(bytearray(4096)),
            group=memoryview(bytearray(4096)),
            ledger=memoryview(bytearray(LEDGER_BYTES)),
            routes=None,
            generation=1,
            siblings=siblings,
            stand_in=stand_in,
            once=once,
            slot=3,
        )
        worker = registry.load(worker_class).hire(spec)
        worker.after_fork(WorkerFds([], [], messages[1], life[0]))
        made.append(worker)
        return Arbiter(messages[0], worker, [])

    yield make
    for worker in made:  # what a worker has told the interpreter to do in forks closes these, by number
        worker.fds = WorkerFds((), (), -1, -1)
    for end in ends:
        os.close(end)
    for each in unclosed:
        each.close()
    for name in ("life_app", "life_broken", "life_exits"):
        sys.modules.pop(name, None)
