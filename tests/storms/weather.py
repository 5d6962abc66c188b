"""The kinds of weather. One function each: it disturbs the scene until the storm is over, and says what that may cost.

What it sees itself and should not (a probe without an answer, an upload that came back wrong) it complains of.
"""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import NamedTuple

from tricorn.arbiter.control.commands import LOOKS
from tricorn.control.client import Control, NoAnswer, NoServer, Refused, TooLate

from tests.apps.hostile import LINES
from tests.harness import EVENT_LOOPS, Malformed, Wire, proc
from tests.harness.classes import THREADED
from tests.harness.frames import BINARY
from tests.harness.transports import HTTP_2
from tests.harness.wire import Silent, request
from tests.storms.scene import Scene, send

ENDED = (OSError, Malformed, AssertionError)
"""How a connection may end for a client, whatever the reason."""
MEANINGLESS = (signal.SIGHUP, signal.SIGUSR2, signal.SIGWINCH, signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR1)
"""To a worker; USR1 has it open its log files anew."""


class Weather(NamedTuple):
    name: str
    act: Callable[[Scene, random.Random], None]
    classes: tuple[str, ...] = ()
    """All if empty."""


def reloads(scene: Scene, dice: random.Random) -> None:
    while scene.wait(dice.uniform(0.2, 1.5)):
        send(scene.server.pid, signal.SIGHUP)


def canaries(scene: Scene, dice: random.Random) -> None:
    """Reloads that begin with some of the workers, of the same code. What comes meanwhile may end them either way."""
    while scene.wait(dice.uniform(0.2, 1.5)):
        try:
            with Control.connect(scene.control, timeout=20) as control:
                control.ask("reload", canary=dice.choice((1, 2, "50%")), **{"for": dice.uniform(0.1, 1.0)})
        except TooLate as error:
            scene.complain(f"control: {error}")
        except (NoAnswer, NoServer):
            pass  # the server stops


def scaling(scene: Scene, dice: random.Random) -> None:
    """One worker more, and one less again."""
    while scene.wait(dice.uniform(0.1, 0.6)):
        send(scene.server.pid, signal.SIGTTIN)
        scene.wait(dice.uniform(0.0, 0.6))
        send(scene.server.pid, signal.SIGTTOU)


def signals(scene: Scene, dice: random.Random) -> None:
    """Bursts of different signals, so that their handlers nest."""
    while scene.wait(dice.uniform(0.05, 0.4)):
        burst = dice.sample(MEANINGLESS, dice.randint(2, len(MEANINGLESS)))
        if pids := scene.serving():
            pid = dice.choice(pids)
            for number in burst:
                send(pid, number)
        send(scene.server.pid, signal.SIGUSR1)


def kills(scene: Scene, dice: random.Random) -> None:
    """Workers die of SIGKILL, with all their connections; only when all are there, or none would ever serve."""
    while scene.wait(dice.uniform(0.5, 1.5)):
        pids = scene.server.worker_pids()
        if len(pids) >= scene.workers:
            scene.charge(deaths=1)
            send(dice.choice(pids), signal.SIGKILL)


def pauses(scene: Scene, dice: random.Random) -> None:
    """All processes stop, longer than `timeout` at times, and go on in any order."""
    while scene.wait(dice.uniform(0.2, 1.0)):
        scene.paused.set()
        stopped = dice.sample(pids := scene.processes(), len(pids))
        for pid in stopped:
            send(pid, signal.SIGSTOP)
        scene.wait(dice.choice((0.1, 0.3, 1.0, 5.5)))
        for pid in dice.sample(stopped, len(stopped)):
            send(pid, signal.SIGCONT)
            scene.wait(dice.choice((0.0, 0.0, 0.05)))
        scene.paused.clear()


def forks(scene: Scene, dice: random.Random) -> None:
    while scene.wait(dice.uniform(0.01, 0.2)):
        how = dice.choice(("exit", "exit", "raise", "stay"))
        with suppress(*ENDED), scene.connect() as wire:
            reply = wire.get(f"/fork?how={how}")
            if reply.status != 200 or "child" not in reply.json():
                scene.complain(f"fork: {reply.status} {reply.body[:100]!r}")
            elif scene.transport is not HTTP_2 and wire.unread:
                scene.complain(f"fork: a second answer {wire.unread[:100]!r}")


def hunger(scene: Scene, dice: random.Random) -> None:
    """The application holds every descriptor of a worker for a moment; the file of a long body gets none (507)."""
    scene.bill.excused.add(507)
    while scene.wait(dice.uniform(0.2, 0.8)):
        with suppress(*ENDED), scene.connect() as wire:
            wire.get(f"/eat?s={dice.uniform(0.05, 0.4):.2f}")


def takeovers(scene: Scene, dice: random.Random) -> None:
    """A worker writes lines to its arbiter that no worker writes, and rubbish into the files about its threads."""
    while scene.wait(dice.uniform(0.05, 0.4)):
        for pid in dice.sample(pids := scene.serving(), min(1, len(pids))):
            read_by_arbiter = {leads_to for leads_to, _ in descriptors(scene.server.pid)}
            for leads_to, path in descriptors(pid):
                with suppress(OSError):
                    if leads_to.startswith("pipe:") and leads_to in read_by_arbiter and not path.endswith(("/1", "/2")):
                        write(path, dice.choice(list(LINES.values())), os.O_WRONLY)
                    elif leads_to.startswith(("/memfd:tricorn-stacks", "/memfd:tricorn-profile")):
                        write(path, dice.randbytes(dice.choice((1, 100, 5000))), os.O_RDWR)


def descriptors(pid: int) -> Iterator[tuple[str, str]]:
    """Where those of a process lead, and their paths in proc(5)."""
    with suppress(OSError):  # it has left
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{name}"), f"/proc/{pid}/fd/{name}"


def write(path: str, data: bytes, flags: int) -> None:
    file = os.open(path, flags | os.O_NONBLOCK)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def probes(scene: Scene, dice: random.Random) -> None:
    """Health probes, each of which is answered."""
    while scene.wait(dice.uniform(0.01, 0.2)):
        try:
            with Wire(scene.admin) as wire:
                reply = wire.get("/healthz")
                if reply.status != 200:
                    scene.complain(f"probe: {reply.status}")
        except Silent:
            continue  # the worker that had accepted it was leaving, or was killed
        except ENDED as error:
            if not isinstance(error, ConnectionError):
                scene.complain(f"probe: {error!r}")


def questions(scene: Scene, dice: random.Random) -> None:
    """Clients of the control socket, which look at everything."""
    while scene.wait(dice.uniform(0.0, 0.2)):
        ask(scene, dice)


def questions_to_the_end(scene: Scene, dice: random.Random) -> None:
    """Of a server that stops: it answers, or closes the connection."""
    while scene.server.process.poll() is None:
        ask(scene, dice)
        time.sleep(0.005)  # its end wants the processor as well


def ask(scene: Scene, dice: random.Random) -> None:
    try:
        with Control.connect(scene.control, timeout=20) as control:
            control.pages()
            for look in dice.sample(LOOKS, 4):
                control.ask(look)
    except Refused as error:
        if error.kind != "refused":  # which an unhealthy server says of its health
            scene.complain(f"control: {error.kind}: {error}")
    except TooLate as error:
        scene.complain(f"control: {error}")
    except (NoAnswer, NoServer):
        pass  # the server stops


def uploads(scene: Scene, dice: random.Random) -> None:
    """Bodies of megabytes as fast as they go, some in chunks."""
    body = dice.randbytes(dice.randrange(1 << 20, 6 << 20))
    digest = hashlib.sha256(body).hexdigest()
    while scene.wait(dice.uniform(0.0, 0.1)):
        with suppress(*ENDED), scene.connect() as wire:
            if dice.random() < 0.5 or scene.transport is HTTP_2:
                reply = wire.ask("POST", "/upload?id=-", (), body)
            else:
                step = dice.choice((1000, 65536, 1 << 20))
                parts = [b"%x\r\n%b\r\n" % (len(p := body[at : at + step]), p) for at in range(0, len(body), step)]
                fields = (("Transfer-Encoding", "chunked"),)
                wire.send(request("POST", "/upload?id=-", fields), *parts, b"0\r\n\r\n")
                reply = wire.reply("POST")
            if reply.status == 200 and reply.json()["sha256"] != digest:
                scene.complain(f"upload: {reply.json()['length']} bytes came of {len(body)}")
            elif reply.status not in {200, 503} | scene.bill.excused:
                scene.complain(f"upload: {reply.status} {reply.body[:100]!r}")


def half_heads(scene: Scene, dice: random.Random) -> None:
    """Clients that never finish their heads, more than there are descriptors in all."""
    with ExitStack() as stack:
        while scene.wait(0.02):
            with suppress(OSError):
                wire = stack.enter_context(scene.transport.http1(scene.server.address, timeout=2))
                wire.send(b"GET / HTTP/1.1\r\nX: " + b"x" * dice.randrange(0, 2000))


def slow_readers(scene: Scene, dice: random.Random) -> None:
    """Clients that ask for megabytes and read late, or leave in the middle."""
    while scene.wait(dice.uniform(0.05, 0.3)):
        with suppress(*ENDED), scene.connect(receive_buffer=4096) as wire:
            megabytes = dice.randint(1, 3)
            wire.send(request("GET", f"/stream?mb={megabytes}"))
            scene.wait(dice.uniform(0.0, 1.0))
            if dice.random() < 0.5:
                wire.reset()
                continue
            reply = wire.reply()
            if reply.status == 200 and len(reply.body) != megabytes << 20:
                scene.complain(f"stream: {len(reply.body)} bytes of {megabytes << 20}")


def websockets(scene: Scene, dice: random.Random) -> None:
    while scene.wait(dice.uniform(0.0, 0.1)):
        with suppress(*ENDED), scene.transport.frames(scene.server.address, "/ws", timeout=20) as wire:
            for _ in range(dice.randint(1, 20)):
                text = dice.randbytes(dice.choice((1, 125, 3000)))
                wire.put(BINARY, text)
                frame = wire.frame()
                if frame.first == BINARY and frame.payload != text:
                    scene.complain("websocket: another message came back")
                if frame.first != BINARY:
                    break


def memory(scene: Scene, dice: random.Random) -> None:
    """A worker has hardly any address space left for a moment: it may refuse, and it may end, but it tells no lie."""
    scene.bill.excused |= {500, 503}
    while scene.wait(dice.uniform(0.3, 1.0)):
        for pid in dice.sample(pids := scene.serving(), min(1, len(pids))):
            with suppress(ProcessLookupError, FileNotFoundError):
                before = resource.prlimit(pid, resource.RLIMIT_AS)
                resource.prlimit(pid, resource.RLIMIT_AS, (proc.mapped_bytes(pid) + (1 << 20), before[1]))
                scene.wait(dice.uniform(0.05, 0.3))
                resource.prlimit(pid, resource.RLIMIT_AS, before)


WEATHER = [
    Weather("reloads", reloads),
    Weather("scaling", scaling),
    Weather("signals", signals),
    Weather("kills", kills),
    Weather("pauses", pauses),
    Weather("forks", forks),
    Weather("hunger", hunger),
    Weather("takeovers", takeovers),
    Weather("probes", probes),
    Weather("questions", questions),
    Weather("uploads", uploads),
    Weather("half-heads", half_heads),
    Weather("slow-readers", slow_readers),
    Weather("websockets", websockets, classes=EVENT_LOOPS),
    Weather("memory", memory, classes=THREADED),
    Weather("canaries", canaries),
]
"""Hubs and loops are not ours, and promise nothing without memory."""


def dying_molds(scene: Scene, dice: random.Random) -> None:
    """Molds die of SIGKILL: those that fork, and those that load the application."""
    while scene.wait(dice.uniform(0.3, 1.5)):
        workers = scene.server.worker_pids()
        for pid in proc.children(scene.server.pid):
            if pid not in workers:
                send(pid, signal.SIGKILL)


def dying_forks(scene: Scene, dice: random.Random) -> None:
    """Whatever a mold has just forked dies of SIGKILL: the process between, or the worker before it says anything.

    So that there is something, workers leave meanwhile.
    """
    while scene.wait(dice.uniform(0.2, 1.0)):
        if dice.random() < 0.5 and (serving := scene.serving()):
            send(dice.choice(serving), signal.SIGTERM)
        end = time.monotonic() + dice.uniform(0.05, 0.4)
        while time.monotonic() < end:
            for child in proc.children(scene.server.pid):
                for fork in proc.children(child):
                    if is_fork_of(fork, child) and dice.random() < 0.5:
                        send(fork, signal.SIGKILL)


def is_fork_of(fork: int, mold: int) -> bool:
    """Not of a worker: the application of a storm forks, too."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return proc.threads(mold) == 1 and proc.parent(fork) == mold
    return False


OF_MOLDS = [Weather("dying-molds", dying_molds), Weather("dying-forks", dying_forks)]


def forecast(worker_class: str, dice: random.Random) -> list[Weather]:
    """Three to five kinds that this class can have."""
    possible = [kind for kind in WEATHER if not kind.classes or worker_class in kind.classes]
    return dice.sample(possible, dice.randint(3, 5))


class Front:
    """The weather of one storm: a thread for each kind, all ended before anything is counted."""

    def __init__(self, scene: Scene, kinds: list[Weather], dice: random.Random) -> None:
        self._scene = scene
        self._threads = [
            threading.Thread(target=self._act, args=(kind, random.Random(dice.random())), name=kind.name, daemon=True)
            for kind in kinds
        ]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def pass_over(self) -> None:
        self._scene.over.set()
        self._scene.resume()
        for thread in self._threads:
            thread.join(40)
            if thread.is_alive():
                self._scene.complain(f"{thread.name}: a client waits for ever")

    def _act(self, kind: Weather, dice: random.Random) -> None:
        try:
            kind.act(self._scene, dice)
        except Exception as error:
            self._scene.complain(f"{kind.name}: {error!r}")
