"""The control socket of a running server: `tricorn ctl`, the client, and what gunicorn's program sends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from tricorn.arbiter.control.commands import LOOKS
from tricorn.control.client import VARIABLE, Control, ControlError, Refused, find
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.workers import watch

from tests.harness.classes import ALL_CLASSES, configured
from tests.harness.deadline import until
from tests.harness.server import NO_BOOT
from tests.harness.site import Site
from tests.harness.wire import Wire, request

APP = """\
import os
import time

def application(environ, start_response):
    if environ["PATH_INFO"] == "/rubbish":
        start = int(environ["QUERY_STRING"])
        board[start:] = os.urandom(len(board) - start)
    if environ["PATH_INFO"] == "/wait":
        while not os.path.exists(environ["QUERY_STRING"]):
            time.sleep(0.01)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [b"good"]
"""

RUBBISH = """\
def post_worker_init(worker):
    import app
    app.board = worker.spec.page
"""


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Short enough for the name of a socket."""
    short = Path(f"/tmp/tricorn-control-{os.getpid()}")
    short.mkdir(mode=0o700)
    yield short
    left = sorted(path.name for path in short.iterdir())
    for path in short.iterdir():
        path.unlink()
    short.rmdir()
    assert left == [], "a server removes its socket"


def site(directory: Path, config: str = "", workers: int = 1, expects: str | None = None) -> Site:
    conf = f"control_socket = {str(directory / 'ctl')!r}\nworkers = {workers}\n{config}"
    return Site(conf, app="app:application", files={"app.py": APP}, workers=workers, expects=expects)


def ctl(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tricorn", "ctl", "-s", str(directory / "ctl"), *words]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, check=False, cwd="/")


def connected(directory: Path) -> Control:
    return Control.connect(directory / "ctl", timeout=60)


class Gunicornc:
    """gunicorn's framing, as its own client speaks it: four bytes of length, and JSON."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        self._socket.connect(str(path))
        self._last = 0

    def send(self, command: str, *args: str) -> dict[str, Any]:
        self._last += 1
        text = json.dumps({"id": self._last, "command": command, "args": list(args)}).encode()
        self._socket.sendall(len(text).to_bytes(4, "big") + text)
        length = int.from_bytes(self._read(4), "big")
        answer: dict[str, Any] = json.loads(self._read(length))
        assert answer.pop("id") == self._last
        return answer

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            assert piece, "closed"
            data += piece
        return data

    def close(self) -> None:
        self._socket.close()


def test_it_tells_what_is_and_hands_out_its_pages(directory: Path) -> None:
    with site(directory, "proc_name = 'shop'\n", workers=2) as server, connected(directory) as control:
        assert server.get("/").body == b"good"
        until(lambda: control.ask("status")["workers"]["serving"] == 2, "both serve")
        status = control.ask("status")
        assert (status["pid"], status["name"]) == (server.pid, "shop")
        assert (status["state"], status["ready"]) == ("serving", True)
        workers = control.ask("workers")["workers"]
        brief = control.ask("status", brief=True)
        assert brief.keys() == status.keys() - {"requests", "connections", "directory"}
        rows = control.ask("workers", brief=True)["workers"]
        assert [row["pid"] for row in rows] == [row["pid"] for row in workers]
        assert not {"figures", "statuses", "threads"} & rows[0].keys()
        assert [row["slot"] for row in workers] == [1, 2]
        assert {row["pid"] for row in workers} == set(server.worker_pids())
        assert control.ask("listeners")["listeners"][0]["address"] in server.log.text
        assert control.ask("health") == {"healthy": True}
        until(lambda: control.ask("stats")["figures"]["requests"] >= 1, "the request is counted")

        pages = control.pages()
        boards = [Scoreboard(pages.page(row.page)) for row in pages.workers if row.page is not None]
        seen = [board.read() for board in boards]
        assert {each.pid for each in seen if each is not None} == set(server.worker_pids())
        before = sum(board.begun for board in boards)
        server.get("/")
        until(lambda: sum(board.begun for board in boards) == before + 1, "a reader sees what is counted")

        changed = {row["name"]: row["value"] for row in control.ask("config", changed=True)["settings"]}
        assert changed["proc_name"] == "shop"
        with pytest.raises(Refused) as caught:
            control.ask("nonsense")
        assert caught.value.kind == "unknown"
        for pid in server.worker_pids():
            assert not holds(pid, directory / "ctl"), "workers have nothing of it"


def holds(pid: int, path: Path) -> bool:
    """Whether the process has the listening socket with this name, or a connection to it."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    inodes = {f"socket:[{row[6]}]" for row in rows if row[-1] == str(path)}
    assert inodes
    return any(os.readlink(entry) in inodes for entry in Path(f"/proc/{pid}/fd").iterdir())


def test_a_server_that_stops_answers_too(directory: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with site(directory, "graceful_timeout = 60\n") as server, connected(directory) as control:
        (before,) = control.ask("listeners")["listeners"]
        with server.connect() as slow:
            slow.send(request("GET", f"/wait?{gate}", [("Connection", "close")]))
            until(lambda: control.ask("requests")["count"] == 1, "it is busy, and leaves later")
            server.signal(signal.SIGTERM)
            until(lambda: control.ask("listeners")["listeners"] == [{**before, "fd": None}], "its sockets are closed")
            control.pages()
            for look in LOOKS:
                control.ask(look)
            status = control.ask("status")
            assert (status["state"], status["listeners"]) == ("stopping", [before["address"]])
            client = Gunicornc(directory / "ctl")
            for target in ("all", "workers", "dirty", "config", "stats", "listeners"):
                assert client.send(f"show {target}")["status"] == "ok"
            client.close()
            gate.touch()
            assert slow.reply().status == 200
        assert server.wait_exit() == 0


def test_a_workers_class_is_the_one_that_auto_has_chosen(directory: Path) -> None:
    with site(directory, "worker_class = 'auto'\nthreads = 3\n"), connected(directory) as control:

        def classes() -> list[str]:
            return [row["class"] for row in control.ask("workers")["workers"]]

        until(lambda: classes() == ["gthread"], "the worker has told which")


def test_a_reload_can_be_waited_for_and_scripts_know_how_it_ended(directory: Path) -> None:
    with site(directory, expects=NO_BOOT) as server:
        before = server.worker_pids()
        done = ctl(directory, "reload", "--wait", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"generation": 2, "workers": 1}
        after = server.worker_pids()
        assert not set(before) & set(after) or len(after) > 1

        server.write("app.py", "import shop_of_yesterday\n")
        failed = ctl(directory, "reload", "--wait")
        assert failed.returncode == 1
        assert "shop_of_yesterday" in failed.stderr
        assert server.get("/").body == b"good"

        server.configure("workers = 'many'\n")
        refused = ctl(directory, "reload", "--wait")
        assert refused.returncode == 1
        assert "workers" in refused.stderr
        assert server.get("/").body == b"good"


def test_a_number_that_was_asked_for_outlives_a_reload_until_it_is_configured_anew(directory: Path) -> None:
    with site(directory) as server, connected(directory) as control:
        assert control.ask("scale", workers="+1") == {"previous": 1, "workers": 2}
        server.write("app.py", APP)
        control.ask("reload", wait=True)
        assert control.ask("status")["workers"]["target"] == 2
        assert control.ask("scale", workers="auto") == {"previous": 2, "workers": 1}
        until(lambda: len(control.ask("workers")["workers"]) == 1, "one worker is left")
        (pid,) = server.worker_pids()
        (row,) = control.ask("workers")["workers"]
        assert control.ask("drain", slot=row["slot"], wait=True) == {"status": "drained", "pid": pid, "exit_status": 0}
        assert pid not in server.worker_pids()
        assert "Control: uid" in server.log.text


def test_events_are_told_as_they_happen(directory: Path) -> None:
    with site(directory), connected(directory) as control, connected(directory) as follower:
        until(lambda: control.ask("status")["workers"]["serving"] == 1, "it serves")
        events = follower.events()
        # The generator asks at its first step: what is told before that is not heard.
        first = subprocess.Popen(
            [sys.executable, "-m", "tricorn", "ctl", "-s", str(directory / "ctl"), "scale", "2"],
            stdout=subprocess.DEVNULL,
        )
        heard = [next(events)["event"] for _ in range(3)]
        assert first.wait(20) == 0
        assert sorted(heard) == ["ready", "scaled", "spawned"]
        control.ask("ready", on=False)
        assert next(events) == {"event": "readiness", "on": False}


def test_readiness_is_denied_and_requests_are_served(directory: Path) -> None:
    from tests.harness.server import free_port
    from tests.harness.wire import Wire

    port = free_port()
    with site(directory, f"admin_bind = '127.0.0.1:{port}'\n") as server, connected(directory) as control:

        def ready() -> int:
            with Wire(("127.0.0.1", port)) as wire:
                return wire.ask("GET", "/readyz").status

        until(lambda: ready() == 200, "it is ready")
        control.ask("ready", on=False)
        until(lambda: ready() == 503, "it says that it is not")
        assert server.get("/").body == b"good"
        control.ask("reload", wait=True)
        assert ready() == 503, "new workers too"
        assert ctl(directory, "health").returncode == 0
        control.ask("ready", on=True)
        until(lambda: ready() == 200, "it is ready again")


def test_a_worker_that_is_replaced_denies_readiness_too(directory: Path, tmp_path: Path) -> None:
    gate, admin = tmp_path / "gate", tmp_path / "admin"
    config = f"admin_bind = 'unix:{admin}'\nworker_class = 'gthread'\nthreads = 2\n"
    with site(directory, config) as server, connected(directory) as control:
        until(lambda: control.ask("status")["ready"], "it serves")
        control.ask("ready", on=False)
        with server.connect() as slow, Wire(str(admin)) as asking:
            assert asking.ask("GET", "/readyz").status == 503
            slow.send(request("GET", f"/wait?{gate}"))
            until(lambda: control.ask("requests")["count"] == 1, "it is busy, and leaves later")
            control.ask("reload", wait=True)

            def is_draining() -> bool:
                pages = control.pages()
                seen = [Scoreboard(pages.page(row.page)).read() for row in pages.workers if row.page is not None]
                return "draining" in [each.state for each in seen if each is not None]

            until(is_draining, "its core knows that it leaves")
            assert asking.ask("GET", "/readyz").status == 503
            gate.touch()
            assert slow.reply().status == 200


def test_gunicorns_program_finds_its_own_words_and_answers(directory: Path) -> None:
    with site(directory, workers=2) as server:
        client = Gunicornc(directory / "ctl")
        until(lambda: all(row["booted"] for row in client.send("show workers")["data"]["workers"]), "all serve")
        shown = client.send("show workers")
        assert shown["status"] == "ok"
        assert shown["data"]["count"] == 2
        for row in shown["data"]["workers"]:
            assert row.keys() == {"pid", "age", "booted", "aborted", "last_heartbeat"}
            assert row["booted"] is True
        everything = client.send("show all")["data"]
        assert everything["arbiter"] == {"pid": server.pid, "type": "arbiter", "role": "master"}
        assert everything["web_worker_count"] == 2
        assert client.send("show dirty")["data"]["enabled"] is False
        assert client.send("show config")["data"]["workers"] == 2
        assert client.send("show stats")["data"]["workers_target"] == 2
        assert client.send("show listeners")["data"]["count"] == 1
        assert "worker add [N]" in client.send("help")["data"]["commands"]
        assert client.send("worker add", "1")["data"] == {"added": 1, "previous": 2, "total": 3}
        assert client.send("worker remove 9")["data"] == {"removed": 2, "previous": 3, "total": 1}
        until(lambda: len(server.worker_pids()) == 1, "one is left")
        assert client.send("worker kill 1")["data"] == {"success": False, "error": "Worker 1 not found"}
        (pid,) = server.worker_pids()
        assert client.send(f"worker kill {pid}")["data"] == {"success": True, "killed": pid}
        until(lambda: server.worker_pids() not in ([], [pid]), "it is replaced")
        for wrong, error in [
            ("", "Empty command"),
            ("show", "Invalid argument: Missing show target (all|workers|dirty|config|stats|listeners)"),
            ("eat", "Invalid argument: Unknown command: eat"),
            ("worker add x", "Invalid argument: invalid literal for int() with base 10: 'x'"),
            ("show 'workers", "Invalid argument: No closing quotation"),
        ]:
            assert client.send(wrong) == {"status": "error", "error": error}
        assert client.send("reload")["data"] == {"status": "reloading"}
        assert client.send("shutdown quick")["data"] == {"status": "shutting_down", "mode": "quick"}
        client.close()
        assert server.wait_exit() == 0


def test_a_successor_has_a_socket_and_takes_the_name_when_it_is_promoted(directory: Path) -> None:
    pidfile = directory / "pid"
    with site(directory, f"pidfile = {str(pidfile)!r}\n") as server:
        with connected(directory) as control:
            control.ask("upgrade")
        until(lambda: (directory / "ctl.2").exists(), "the successor has one")
        with Control.connect(directory / "ctl.2", 20) as new:
            until(lambda: new.ask("status")["ready"], "the successor serves")
            successor = new.ask("status")["pid"]
            with connected(directory) as old:
                assert old.ask("status")["successor"] == successor
                old.ask("shutdown")
            until(lambda: new.ask("status")["predecessor"] is None, "the old one is gone")
        with connected(directory) as control:
            assert control.ask("status")["pid"] == successor
        assert not (directory / "ctl.2").exists()
        os.kill(successor, signal.SIGTERM)
        until(lambda: not (directory / "ctl").exists(), "it has gone")
        until(lambda: not pidfile.exists(), "and its pidfile")
        server.wait_exit()


def test_servers_of_one_user_have_a_socket_each(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"XDG_RUNTIME_DIR": str(directory), "RUNTIME_DIRECTORY": ""}
    files = {"app.py": APP}
    with (
        Site("proc_name = 'shop'\n", app="app:application", files=files, env=environment) as one,
        Site("proc_name = 'blog'\n", app="app:application", files=files, env=environment) as other,
    ):
        sockets = directory / "tricorn"
        for server, name in ((one, "shop"), (other, "blog")):
            for path in (sockets / f"{server.pid}.ctl", sockets / f"{name}.ctl"):
                with Control.connect(path, 20) as control:
                    assert control.ask("status")["pid"] == server.pid
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
        assert find(None, "blog") == sockets / "blog.ctl"
        with pytest.raises(ControlError, match="--socket"):
            find(None, None)
    assert list(sockets.iterdir()) == []
    sockets.rmdir()


LOOKS_IN_ONE_PLACE = """
import sys
from tricorn.cli import main
from tricorn.control import client

place = sys.argv.pop(1)
client.looked_at = lambda: [place]  # and not where root finds the servers of other tests
sys.exit(main())
"""


def test_what_changes_a_server_wants_its_name_in_another_directory(directory: Path) -> None:
    environment = {"XDG_RUNTIME_DIR": str(directory), "RUNTIME_DIRECTORY": ""}
    with Site("proc_name = 'shop'\n", app="app:application", files={"app.py": APP}, env=environment) as server:

        def ask(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-c", LOOKS_IN_ONE_PLACE, str(directory / "tricorn"), "ctl", *words]
            environ = {**os.environ, **environment, VARIABLE: "auto"}
            return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environ)

        elsewhere = ask("scale", "2", cwd=directory)
        assert elsewhere.returncode == 2
        assert f"The only server is shop (pid {server.pid}, app:application) in {server.directory}" in elsewhere.stderr
        assert elsewhere.stderr.endswith("Select it with --name shop.\n")
        assert ask("status", cwd=directory).returncode == 0
        assert len(server.worker_pids()) == 1
        here = ask("scale", "2", cwd=server.directory)
        assert (here.returncode, here.stderr.split(" (")[0]) == (0, "Server: shop")
        named = ask("-n", "shop", "scale", "1", cwd=directory)
        assert (named.returncode, named.stderr) == (0, "")
    (directory / "tricorn").rmdir()


POOLED = """\
import asyncio, os
from pathlib import Path

def waits(gate):
    os.close(os.open(gate, os.O_RDONLY))

async def application(scope, receive, send):
    if scope["type"] == "http":
        await asyncio.get_running_loop().run_in_executor(None, waits, scope["query_string"].decode())
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})
"""


@pytest.mark.skipif(watch.STACKS_SIGNAL is None, reason="no memfd here")
def test_a_thread_of_a_pool_is_never_called_the_main_one(directory: Path, tmp_path: Path) -> None:
    """The signal comes to whichever thread the kernel chooses."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    config = f"worker_class = 'asgi'\ncontrol_socket = {str(directory / 'ctl')!r}\n"
    with (
        Site(config, app="pooled:application", files={"pooled.py": POOLED}) as server,
        connected(directory) as control,
        server.connect() as wire,
    ):
        wire.send(request("GET", f"/?{gate}"))

        def pooled() -> list[dict[str, Any]]:
            (worker,) = control.ask("stacks", slot=1)["workers"]
            return [thread for thread in worker["threads"] if "in waits" in "".join(thread["stack"])]

        until(lambda: control.ask("requests")["count"] == 1, "the request runs")
        for _ in range(5):
            (thread,) = until(pooled, "the thread that waits is told")
            assert not thread["main"]
        os.close(os.open(gate, os.O_WRONLY))
        assert wire.reply().status == 204


@pytest.mark.skipif(watch.STACKS_SIGNAL is None, reason="no memfd here")
@pytest.mark.parametrize("worker_class", ["sync", "gthread"])
def test_where_a_request_is_can_be_asked(directory: Path, tmp_path: Path, worker_class: str) -> None:
    gate = tmp_path / "gate"
    with site(directory, f"worker_class = {worker_class!r}\n") as server, connected(directory) as control:
        with server.connect() as wire:
            wire.send(request("GET", f"/wait?{gate}"))
            until(lambda: control.ask("requests")["count"] == 1, "the request runs")
            (worker,) = control.ask("stacks", slot=1)["workers"]
            stack = [frame for thread in worker["threads"] for frame in thread["stack"]]
            assert any(frame.endswith("in application") for frame in stack), worker
            assert "workers/" not in "".join(stack)
            assert worker["requests"][0]["text"] == f"GET /wait?{gate}"[:104]
            assert "in application" in ctl(directory, "stacks").stdout
            gate.touch()
            assert wire.reply().status == 200
        (worker,) = control.ask("stacks")["workers"]
        assert not any("application" in frame for thread in worker["threads"] for frame in thread["stack"])


def running(control: Control, path: str) -> dict[str, Any]:
    """What `cancel` is to be told of the one request with this path."""
    rows = until(lambda: [row for row in control.ask("requests")["requests"] if path in row["text"]], "it runs")
    return {"slot": rows[0]["slot"], "place": rows[0]["place"], "start": rows[0]["start"]}


@ALL_CLASSES
def test_a_request_is_cancelled_and_no_other(directory: Path, tmp_path: Path, worker_class: str) -> None:
    # A thread that is not the main one sees an exception between two instructions only.
    app, slow, quick = ("stuck", "/naps", "/short") if worker_class == "gthread" else ("gallery", "/sleep", "/sleep")
    log = tmp_path / "access"
    config = (
        f"{configured(worker_class)}request_timeout = 600\nerrorlog = '-'\n"
        f"accesslog = {str(log)!r}\naccess_log_format = '%(U)s %(s)s %(outcome)s'\n"
        f"control_socket = {str(directory / 'ctl')!r}\n"
    )
    with Site(config, app=f"{app}:application") as server, connected(directory) as control:
        with server.connect() as wire:
            wire.send(request("GET", f"{slow}?s=60"))
            call = running(control, slow)
            for wrong in ({"start": call["start"] + 1}, {"place": call["place"] + 1}):
                with pytest.raises(Refused, match="it has ended"):
                    control.ask("cancel", **call | wrong)
            told = ctl(directory, "cancel", f"{call['slot']}.{call['place']}@{call['start']}")
            assert told.returncode == 0, told.stderr
            assert "RequestCancelled" in told.stdout
            assert wire.reply().status == 504
        server.log.wait(f"Error handling request GET {slow}: cancelled by operator")
        server.log.wait(rf"GET {slow}\?s=60 cancelled by operator after")
        assert "did not say where" not in server.log.text
        with pytest.raises(Refused, match="it has ended"):
            control.ask("cancel", **call)
        until(lambda: log.read_text().splitlines() == [f"{slow} 504 late"], "the log says so")
        # Who cancels one request does no harm to the next, which may be in the same place.
        assert server.get(f"{quick}?s=0.1").status == 200
        assert "request_timeout" not in server.log.text


@pytest.mark.parametrize("worker_class", ["gthread", "gevent"])
def test_a_request_that_c_code_holds_up_is_answered_without_it(directory: Path, worker_class: str) -> None:
    config = (
        f"{configured(worker_class)}request_timeout = 600\ntimeout = 0\ncontrol_socket = {str(directory / 'ctl')!r}\n"
    )
    with Site(config, app="stuck:application") as server, connected(directory) as control:
        with server.connect() as wire:
            wire.send(request("GET", "/c"))
            assert control.ask("cancel", **running(control, "/c"))["status"] == "cancelled"
            assert wire.reply().status == 504
        server.log.wait("GET /c cancelled by operator after")
        os.kill(server.worker_pids()[0], signal.SIGKILL)


def test_without_a_limit_no_request_can_be_cancelled(directory: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with site(directory) as server, connected(directory) as control, server.connect() as wire:
        wire.send(request("GET", f"/wait?{gate}"))
        with pytest.raises(Refused, match="request_timeout"):
            control.ask("cancel", **running(control, "/wait"))
        gate.touch()
        assert wire.reply().status == 200


OTHER = """\
import json, os, socket, sys
os.setuid(65534)
client = socket.socket(socket.AF_UNIX)
try:
    client.connect(sys.argv[1])
except PermissionError:
    sys.exit(13)
client.sendall(b'{"do":"status"}\\n{"do":"scale","workers":2}\\n{"do":"shutdown"}\\n')
answers = client.makefile("rb")
print(json.dumps([json.loads(answers.readline()) for _ in range(3)]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
def test_another_user_cannot_connect_or_may_look_only(directory: Path) -> None:
    def other() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-c", OTHER, str(directory / "ctl")]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/")

    directory.chmod(0o755)
    with site(directory) as server:
        assert other().returncode == 13, "the mode is 0600"
        assert server.get("/").body == b"good"
    with site(directory, "control_socket_mode = 0o666\ncontrol_read_only = True\n") as server:
        asked = other()
        assert asked.returncode == 0, asked.stderr
        status, scale, shutdown = json.loads(asked.stdout)
        assert (status["ok"], status["result"]["pid"]) == (True, server.pid)
        assert (scale["kind"], shutdown["kind"]) == ("denied", "denied")
        server.log.wait(r"Control: uid 65534 \(pid \d+\) requested: scale 2; denied \(control_read_only\)")
        with connected(directory) as control:
            assert control.ask("status")["workers"]["target"] == 1


def test_clients_that_mean_no_good_delay_nothing(directory: Path) -> None:
    """They have all the places there are; the arbiter looks after its workers as ever."""
    payloads = [b"", b"{", b"\0\0\1", b"{" * (64 << 10), b'{"do":"workers"}\n' * 3000, b"\xff" * 100, b"\0" * 9]
    with site(directory, workers=2) as server, ExitStack() as stack:
        for payload in [*payloads, b"", b"one too many"]:
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            client.connect(str(directory / "ctl"))
            with suppress(OSError):
                client.send(payload)
        victim = server.worker_pids()[0]
        os.kill(victim, signal.SIGKILL)
        until(lambda: victim not in server.worker_pids() and len(server.worker_pids()) == 2, "it is replaced")
        assert server.get("/").body == b"good"
        server.signal(signal.SIGHUP)
        server.log.wait("Hang up")


def test_a_worker_that_writes_rubbish_into_its_page_ends_nothing_but_itself(directory: Path) -> None:
    config = f"timeout = 2\nmax_worker_memory = {1 << 40}\n{RUBBISH}"
    with site(directory, config, workers=2) as server, connected(directory) as control:
        pids = set(server.worker_pids())
        for start in [0, 8, 16, 16, 8, 0, 8, 16]:  # without and with the magic number, and the layout behind it
            with suppress(ConnectionError, EOFError):
                server.get(f"/rubbish?{start}")
            for word in ("status", "workers", "stats", "requests"):
                control.ask(word)
            with suppress(Refused):  # for a moment no worker may serve: it ends where its core sees that the page lies
                control.ask("health")
            control.pages()
        assert ctl(directory, "workers").returncode == 0
        for pid in pids:
            with suppress(ProcessLookupError):  # its core may have ended it
                os.kill(pid, signal.SIGKILL)  # what it leaves in its page is read once more
        until(lambda: len(control.ask("workers")["workers"]) == 2 and not pids & set(server.worker_pids()), "replaced")
        assert control.ask("status")["pid"] == server.pid
        until(lambda: server.get("/").body == b"good", "requests are served")
        assert "defect" not in server.log.text
