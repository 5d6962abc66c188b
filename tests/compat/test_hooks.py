"""Every hook: in which process, in which order, with which arguments."""

from __future__ import annotations

import json
import os
import pwd
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ALL_CLASSES, CLASSES, EVENT_LOOPS, KINDS, NO_BOOT, REFERENCE, Site, configured, proc, until
from tests.harness.site import replaced
from tests.harness.wire import request

RECORDER = (Path(__file__).parent / "hook_recorder.py").read_text().replace("from __future__ import annotations", "")
Record = dict[str, Any]


class Recorded(Site):
    def __init__(self, directory: Path, config: str = "", **options: Any) -> None:
        self.hook_log = directory / "hooks"
        super().__init__(RECORDER + "\n" + config, env={"HOOK_LOG": str(self.hook_log)}, **options)

    def records(self) -> list[Record]:
        try:
            return [json.loads(line) for line in self.hook_log.read_text().splitlines()]
        except FileNotFoundError:
            return []

    def names(self, start: int = 0) -> list[str]:
        return [record["hook"] for record in self.records()[start:]]

    def wait(self, hook: str, count: int = 1) -> list[Record]:
        """The records of `hook`, once there are `count`."""
        try:
            return until(
                lambda: (
                    found
                    if len(found := [record for record in self.records() if record["hook"] == hook]) >= count
                    else []
                ),
                f"{count} x {hook}",
            )
        except AssertionError as error:
            raise AssertionError(f"{error}; came: {self.names()}; its log:\n{self.log.text}") from None


@CLASSES
def test_start_and_stop(tmp_path: Path, worker_class: str) -> None:
    with Recorded(tmp_path, configured(worker_class, 2)) as server:
        server.wait("post_worker_init")
        master, worker = server.pid, server.worker_pid()
        assert server.names() == [
            "nworkers_changed",
            "on_starting",
            "when_ready",
            "pre_fork",
            "post_fork",
            "post_worker_init",
        ]
        assert [record["pid"] for record in server.records()] == [master, master, master, master, worker, worker]
        server.get("/hello")
        server.wait("post_request")
        lines = len(server.records())
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert server.names(lines) == ["worker_exit", "child_exit", "on_exit"]
        assert [record["pid"] for record in server.records()[lines:]] == [worker, master, master]


@CLASSES
def test_start_reload_and_stop_with_a_mold(tmp_path: Path, worker_class: str) -> None:
    """The order is the same, and each hook is called in the process in which it is called without."""
    config = f"{configured(worker_class, 2)}preload_app = 'mold'\n"
    with Recorded(tmp_path, config) as server:
        server.wait("post_worker_init")
        started = server.records()
        assert [record["hook"] for record in started] == [
            "nworkers_changed",
            "on_starting",
            "when_ready",
            "mold_ready",
            "pre_fork",
            "post_fork",
            "post_worker_init",
        ]
        pids = [record["pid"] for record in started]
        mold, worker = pids[3], pids[5]
        assert pids == [server.pid, server.pid, server.pid, mold, server.pid, worker, worker]
        assert len({server.pid, mold, worker}) == 3
        assert started[3]["mold"] == {"pid": mold, "app": True}
        assert started[5]["worker"]["ppid"] == server.pid
        server.get("/hello")
        requests = server.wait("post_request")
        assert requests[0]["pid"] == worker
        lines = len(server.records())
        server.signal(signal.SIGHUP)
        (gone,) = server.wait("child_exit")
        assert gone["pid"] == server.pid
        reloaded = server.records()[lines:]
        assert [record["hook"] for record in reloaded] == [
            *("nworkers_changed", "on_reload", "mold_ready", "pre_fork", "post_fork", "post_worker_init"),
            *("worker_exit", "child_exit"),
        ]
        second, successor = reloaded[2]["pid"], reloaded[4]["pid"]
        pids = [record["pid"] for record in reloaded]
        assert pids == [*[server.pid] * 2, second, server.pid, successor, successor, worker, server.pid]
        assert len({server.pid, mold, second, worker, successor}) == 5
        lines = len(server.records())
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert server.names(lines) == ["worker_exit", "child_exit", "on_exit"]


@pytest.mark.parametrize("worker_class", ["sync", "gthread"])
def test_a_worker_that_becomes_the_mold(tmp_path: Path, worker_class: str) -> None:
    """It ends as a worker, and its successor was there before: no hook is called in it but the one for this."""
    config = f"{configured(worker_class, 1)}preload_app = 'mold'\nrefork = 1\n"
    with Recorded(tmp_path, config) as server:
        server.wait("post_worker_init")
        mold, worker = (record["pid"] for record in server.records() if record["hook"] in ("mold_ready", "post_fork"))
        lines = len(server.records())

        def has_ended() -> bool:
            server.get("/hello")
            return "child_exit" in server.names(lines)

        until(has_ended, "a worker has become the mold")
        hooks = [(each["hook"], each["pid"]) for each in server.records()[lines:] if "request" not in each["hook"]]
        successor = next(pid for hook, pid in hooks if hook == "post_fork")
        assert hooks[:6] == [
            ("pre_fork", server.pid),
            ("post_fork", successor),
            ("post_worker_init", successor),
            ("worker_exit", worker),
            ("before_refork", worker),
            ("child_exit", server.pid),
        ]
        until(
            lambda: server.names(lines).count("child_exit") == 2, "the successor, a fork of the old mold, is replaced"
        )
        forks = [each for each in server.records()[lines:] if each["hook"] == "post_fork"]
        assert len({mold, worker, *(each["pid"] for each in forks)}) == 4
        assert {each["worker"]["ppid"] for each in forks} == {server.pid}
        lines = len(server.records())
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert server.names(lines) == ["worker_exit", "child_exit", "on_exit"]


def test_hooks_between_the_boot_lines(tmp_path: Path) -> None:
    """Where a hook stands among the log's lines is part of what scripts that read the log know."""
    speak = "\n".join(
        f"def {name}(server):\n    server.log.info('hook {name}')\n"
        for name in ("on_starting", "when_ready", "on_exit")
    ) + "\n".join(
        f"def {name}(server, worker):\n    server.log.info('hook {name}')\n" for name in ("pre_fork", "post_fork")
    )
    with Site(f"worker_class = 'sync'\n{speak}") as server:
        server.log.wait("hook post_fork")
        server.signal(signal.SIGTERM)
        server.wait_exit()
    told = [line.partition("] [INFO] ")[2] for line in server.log.lines]
    known = ("Starting", "Listening", "Using", "Booting", "Shutting", "hook")
    found = [line.split()[0] for line in told if line.startswith(known)]
    assert found == ["Starting", "hook", "Listening", "Using", "hook", "hook", "Booting", "hook", "Shutting", "hook"], (
        told
    )


def test_arguments_at_start(tmp_path: Path) -> None:
    with Recorded(tmp_path, "workers = 2\nproc_name = 'shop'\ntimeout = 40\n", workers=2) as server:
        server.wait("post_worker_init", 2)
        records = server.records()
        master, workers = server.pid, server.worker_pids()
    first = records[0]
    assert (first["new"], first["old"], first["num_workers"]) == (2, None, 2)
    for record in records[1:]:
        if "server" in record:
            given = record["server"]
            assert given["pid"] == master
            assert given["num_workers"] == given["cfg"] == given["cfg_get"] == 2
            assert given["address"] == [["127.0.0.1", server.port]]
            assert given["proc_name"] == "shop"
            assert given["app"]
            assert given["worker_objects"]
    ready = next(record for record in records if record["hook"] == "when_ready")
    assert ready["listeners"] == [f"http://127.0.0.1:{server.port}"]
    assert all(fd > 2 for fd in ready["fds"])
    assert ready["server"]["workers"] == []
    forks = [record["worker"] for record in records if record["hook"] == "pre_fork"]
    assert [fork["pid"] for fork in forks] == ["[booting]", "[booting]"]
    assert [fork["age"] for fork in forks] == [1, 2]
    for record in records:
        if record["hook"] in ("post_fork", "post_worker_init"):
            assert record["worker"]["pid"] == record["pid"]
            assert record["pid"] in workers
        if "worker" in record:
            given = record["worker"]
            assert given["ppid"] == master
            assert given["cfg"] == 2
            assert given["app"]
            assert given["tmp"]
            assert given["sockets"] == 1
            assert given["nr"] == 0
            assert given["alive"]
            assert not given["aborted"]
            assert given["timeout"] == 20
            assert given["max_requests"]
            assert given["str"] == f"<Worker {given['pid']}>"
            assert given["wsgi"] == (record["hook"] == "post_worker_init"), record["hook"]
    assert all(not record["worker"]["booted"] for record in records if record["hook"] == "post_fork")


@KINDS
def test_hooks_of_a_request(tmp_path: Path, worker_class: str) -> None:
    with Recorded(tmp_path, configured(worker_class, 2)) as server:
        with server.connect() as wire:
            reply = wire.ask("POST", "/hello?a=1", [("X-Some", "thing"), ("Host", "h")], b"body")
            assert reply.status == 200
            port = wire.sock.getsockname()[1]
        after = server.wait("post_request")[0]
        before = server.wait("pre_request")[0]
        worker = server.worker_pid()
    assert before["pid"] == after["pid"] == worker
    req = before["req"]
    assert (req["method"], req["uri"], req["path"], req["query"]) == ("POST", "/hello?a=1", "/hello", "a=1")
    assert (req["fragment"], req["version"], req["scheme"]) == ("", [1, 1], "http")
    assert ["X-SOME", "thing"] in req["headers"]
    assert ["HOST", "h"] in req["headers"]
    assert req["peer"] == req["remote"] == ["127.0.0.1", port]
    assert req["trailers"] == []
    assert req["proxy"] == ({} if REFERENCE and worker_class == "gevent" else None)
    assert req["body"] or worker_class in EVENT_LOOPS
    assert after["req"] == after["environ"] == {"method": "POST", "path": "/hello"}
    resp = after["resp"]
    assert (resp["status"], resp["status_code"], resp["sent"], resp["response_length"]) == ("200 OK", 200, 6, 6)
    assert resp["headers_sent"]
    assert {name.lower() for name, _ in resp["headers"]} >= {"content-type", "content-length"}
    assert after["worker"]["nr"] == 1


@KINDS
@pytest.mark.parametrize("arguments", ["worker, req", "worker, req, environ", "worker, req, environ, resp"])
def test_arities_of_post_request(tmp_path: Path, worker_class: str, arguments: str) -> None:
    text = f"def post_request({arguments}):\n    worker.log.info('post %s %d', req.path, len(({arguments})))\n"
    with Site(configured(worker_class, 2) + text) as server:
        server.get("/hello")
        server.log.wait(rf"post /hello {arguments.count(',') + 1}")


@KINDS
def test_a_request_hook_that_raises(tmp_path: Path, worker_class: str) -> None:
    text = """
def pre_request(worker, req):
    if req.path == "/before":
        raise RuntimeError("before marker")

def post_request(worker, req, environ, resp):
    if req.path == "/hello":
        raise RuntimeError("after marker")
"""
    with Site(configured(worker_class, 2) + text) as server:
        assert server.get("/before").status == 500
        server.log.wait("before marker")
        assert server.get("/hello").status == 200
        server.log.wait("Exception in post_request hook")
        server.log.wait("after marker")
        assert server.get("/pid").status == 200


@KINDS
def test_post_request_after_an_error_of_the_application(tmp_path: Path, worker_class: str) -> None:
    with Recorded(tmp_path, configured(worker_class, 2)) as server:
        assert server.get("/crash?when=call").status == 500
        server.get("/hello")
        records = server.wait("post_request", 2)
    assert sorted(record["req"]["path"] for record in records) == ["/crash", "/hello"]


def test_a_request_that_is_none_has_no_hooks(tmp_path: Path) -> None:
    with Recorded(tmp_path) as server:
        with server.connect() as wire:
            wire.send(b"NONSENSE\r\n\r\n")
            wire.ended()
        server.get("/hello")
        server.wait("post_request")
        assert server.names().count("pre_request") == server.names().count("post_request") == 1


def test_the_default_pre_request_logs_at_debug() -> None:
    with Site("loglevel = 'debug'\n") as server:
        server.get("/hello?query")
        server.log.wait(r"\[DEBUG\] GET /hello$")


def test_hooks_of_a_reload_by_hup(tmp_path: Path) -> None:
    with Recorded(tmp_path) as server:
        server.wait("post_worker_init")
        start, old = len(server.records()), server.worker_pid()
        server.hup()
        server.wait("child_exit")
        new = server.worker_pid()
        records = server.records()[start:]
        if REFERENCE:
            # The old worker leaves while the new one still boots: their hooks mix.
            boot = [record["hook"] for record in records if record["pid"] == new]
            assert boot == ["post_fork", "post_worker_init"]
            assert server.names(start)[:3] == ["nworkers_changed", "on_reload", "pre_fork"]
        else:
            # The old worker leaves only when the new one is ready.
            assert server.names(start) == [
                "nworkers_changed",
                "on_reload",
                "pre_fork",
                "post_fork",
                "post_worker_init",
                "worker_exit",
                "child_exit",
            ]
        left = {record["hook"]: record for record in records if record["hook"] in ("worker_exit", "child_exit")}
        assert left["worker_exit"]["pid"] == left["worker_exit"]["worker"]["pid"] == old
        assert left["child_exit"]["pid"] == server.pid
        assert left["child_exit"]["worker"]["pid"] == old
        changed = records[0]
        assert (changed["new"], changed["old"]) == (1, 1)
        assert "when_ready" not in server.names(start)
        fork = next(record for record in records if record["hook"] == "pre_fork")
        assert fork["worker"]["age"] == 2


def test_hup_takes_new_hooks(tmp_path: Path) -> None:
    with Recorded(tmp_path) as server:
        server.wait("post_worker_init")
        server.configure(RECORDER + "\ndef post_fork(server, worker):\n    _write('another post_fork')\n")
        server.hup()
        server.wait("another post_fork")


def test_ttin_and_ttou(tmp_path: Path) -> None:
    with Recorded(tmp_path, "loglevel = 'debug'") as server:
        server.wait("post_worker_init")
        (first,) = server.worker_pids()
        server.signal(signal.SIGTTIN)
        changes = server.wait("nworkers_changed", 2)
        if not REFERENCE:  # a worker that still boots leaves before the oldest one
            server.log.wait(r"\bis ready\.$", count=2)
        server.wait("post_worker_init", 2)
        server.signal(signal.SIGTTOU)
        changes = server.wait("nworkers_changed", 3)
        left = server.wait("child_exit")[0]
        assert [(change["new"], change["old"]) for change in changes] == [(1, None), (2, 1), (1, 2)]
        assert all(change["pid"] == server.pid for change in changes)
        assert left["worker"]["pid"] == first, "the oldest leaves"


def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    with Recorded(tmp_path) as server:
        server.get("/")  # it serves: its death is not a failed boot
        victim = server.worker_pid()
        os.kill(victim, signal.SIGKILL)
        left = server.wait("child_exit")[0]
        server.wait("post_worker_init", 2)
        assert left["pid"] == server.pid
        assert left["worker"]["pid"] == victim
        assert left["worker"]["age"] == 1
        assert victim not in left["server"]["workers"]
        assert "worker_exit" not in server.names()


def test_a_hook_of_the_arbiter_that_ends_the_server(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    config = "workers = 2\ndef child_exit(server, worker):\n    raise SystemExit(7)\n"
    with Site(config, workers=2, pid=pidfile) as server:
        server.get("/")
        workers = server.worker_pids()
        os.kill(workers[0], signal.SIGKILL)
        assert server.wait_exit() == 7
        assert REFERENCE or not pidfile.exists()  # there it stays
        until(lambda: not any(proc.is_running(worker) for worker in workers), "the workers are gone")


@pytest.mark.parametrize(("error", "code"), [("raise ValueError('boot')", 3), ("", 4)], ids=["boot", "load"])
@pytest.mark.beyond_reference("child_exit is skipped when the worker did not boot")
def test_child_exit_of_a_worker_that_did_not_boot(tmp_path: Path, error: str, code: int) -> None:
    files = {"broken.py": error}
    with Recorded(tmp_path, app="broken:application", files=files, wait=False, expects=NO_BOOT) as server:
        assert server.wait_exit() == code
        names = server.names()
        assert "child_exit" in names
        assert names[-1] == "on_exit"


def test_a_timeout_calls_worker_abort(tmp_path: Path) -> None:
    with Recorded(tmp_path, configured("sync") + "timeout = 1\n") as server, server.connect() as wire:
        server.wait("post_worker_init")
        victim = server.worker_pid()
        wire.send(request("GET", "/sleep?s=20"))
        abort = server.wait("worker_abort")[0]
        left = server.wait("child_exit")[0]
        server.wait("post_worker_init", 2)
    assert abort["pid"] == abort["worker"]["pid"] == victim
    assert left["worker"]["pid"] == victim


@CLASSES
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT], ids=["INT", "QUIT"])
def test_worker_int(tmp_path: Path, worker_class: str, number: int) -> None:
    with Recorded(tmp_path, configured(worker_class, 2)) as server:
        server.wait("post_worker_init")
        worker, start = server.worker_pid(), len(server.records())
        server.signal(number)
        assert server.wait_exit() == 0
        assert server.names(start) == ["worker_int", "worker_exit", "child_exit", "on_exit"]
        assert server.records()[start]["pid"] == worker


def test_worker_int_by_a_signal_to_the_worker(tmp_path: Path) -> None:
    with Recorded(tmp_path) as server:
        server.wait("post_worker_init")
        worker = server.worker_pid()
        os.kill(worker, signal.SIGINT)
        assert server.wait("worker_int")[0]["worker"]["pid"] == worker
        server.wait("post_worker_init", 2)


def test_pre_exec(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    with Recorded(tmp_path, f"pidfile = {str(pidfile)!r}\n") as server:
        server.wait("post_worker_init")
        server.signal(signal.SIGUSR2)
        record = server.wait("pre_exec")[0]
        successor = Path(f"{pidfile}.2")
        until(successor.exists, "the successor writes its pidfile")
        server.wait("post_worker_init", 2)
        new = int(successor.read_text())
        assert record["pid"] == new != server.pid
        starting = server.wait("on_starting", 2)[1]
        assert starting["pid"] == new
        os.kill(new, signal.SIGTERM)
        until(lambda: server.names().count("on_exit") == 1, "the successor leaves")


def test_a_hook_that_raises_at_the_end_does_not_stop_the_end(tmp_path: Path) -> None:
    text = "def worker_exit(server, worker):\n    raise RuntimeError('exit marker')\n"
    with Site(text) as server:
        server.get("/hello")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
    assert "exit marker" in server.log.text


def test_hooks_by_their_import_path(tmp_path: Path) -> None:
    files = {"hooks.py": "def forked(server, worker):\n    server.log.info('imported hook')\n"}
    with Site(
        "import sys\nsys.path.insert(0, pythonpath.split(',')[0])\npost_fork = 'hooks.forked'\n", files=files
    ) as server:
        server.log.wait("imported hook")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_post_fork_runs_before_the_worker_gives_up_its_privileges(tmp_path: Path) -> None:
    """Hooks that bind a low port or change an owner rely on it; the next hook runs as the application does."""
    notes, user = tmp_path / "notes", pwd.getpwuid(65534)
    config = (
        f"import os\nuser = {user.pw_name!r}\npreload_app = True\n"
        f"notes = os.open({str(notes)!r}, os.O_CREAT | os.O_WRONLY)\n"
        "def post_fork(server, worker):\n    os.write(notes, b'post_fork %d\\n' % os.geteuid())\n"
        "def post_worker_init(worker):\n    os.write(notes, b'post_worker_init %d\\n' % os.geteuid())\n"
    )
    with Site(config) as server:
        server.directory.chmod(0o755)
        assert server.get("/hello").status == 200
    assert notes.read_text() == f"post_fork 0\npost_worker_init {user.pw_uid}\n"


# What a hook's thread does when it is told so: exporters and schedulers have such threads in the arbiter.
OBEYS = """
import os, signal, threading

def when_ready(server):
    def obey():
        while True:
            with open(os.path.join(os.path.dirname(__file__), "orders")) as orders:
                exec(orders.read(), {"server": server, "signal": signal})
    threading.Thread(target=obey, daemon=True).start()
"""


class Obedient(Site):
    def wait_ready(self) -> None:
        super().wait_ready()
        self.get("/")  # it serves: what follows is no failed boot

    def start(self) -> None:
        os.mkfifo(self.directory / "orders")
        super().start()

    def order(self, text: str) -> None:
        (self.directory / "orders").write_text(text)


def test_a_hook_says_how_many_workers_there_are() -> None:
    """Before the start, at a reload, and from a thread."""
    text = (
        "def on_starting(server):\n    server.num_workers = 3\n"
        "def on_reload(server):\n    server.num_workers = 2\n"
        "def nworkers_changed(server, new, old):\n    print('workers', old, new, flush=True)\n"
    )
    with Obedient(f"workers = 1\n{OBEYS}{text}", workers=3) as server:
        assert len(server.worker_pids()) == 3
        server.signal(signal.SIGHUP)
        until(lambda: len(server.worker_pids()) == 2, "two workers")
        server.order("server.num_workers = 1")
        until(lambda: len(server.worker_pids()) == 1, "one worker")
        server.order("server.num_workers += 1")
        until(lambda: len(server.worker_pids()) == 2, "two workers")
    changes = [line for line in server.out.lines if line.startswith("workers")]
    assert changes[-2:] == ["workers 2 1", "workers 1 2"]


@pytest.mark.beyond_reference("a thread that stops or reloads disturbs the main loop there")
def test_a_thread_of_a_hook_reloads_replaces_and_stops() -> None:
    with Obedient(OBEYS) as server:
        replaced(server, lambda: server.order("server.reload()"))
        replaced(server, lambda: server.order("server.kill_workers(signal.SIGTERM)"))
        server.order("server.stop()")
        assert server.wait_exit() == 0
        assert server.log.matching("Handling signal: term")


@ALL_CLASSES
def test_a_hook_ends_the_worker_after_its_request(tmp_path: Path, worker_class: str) -> None:
    """Guards of memory do so."""
    text = """
def pre_request(worker, req):
    worker.notify()

def post_request(worker, req, environ, resp):
    if req.query == "enough":
        worker.alive = False
"""
    with Recorded(tmp_path, configured(worker_class, 2) + text) as server:
        victim = server.worker_pid()
        assert server.get("/hello?enough").status == 200
        left = server.wait("child_exit")[0]
        assert left["worker"]["pid"] == victim
        assert server.get("/hello").status == 200
        assert not server.log.matching("exited with code [^0]|was sent")
        assert REFERENCE or server.log.wait(rf"Replacing worker .pid:{victim}.: the application has set worker.alive")


def test_a_thread_of_the_application_ends_its_worker(tmp_path: Path) -> None:
    text = """
import threading

def post_worker_init(worker):
    _write("post_worker_init")
    first = worker.age == 1
    threading.Thread(target=lambda: first and setattr(worker, "alive", False)).start()
"""
    with Recorded(tmp_path, text) as server:
        assert server.wait("child_exit")[0]["worker"]["age"] == 1
        server.wait("post_worker_init", 2)
        assert server.get("/hello").status == 200
