"""Worker classes that accept connections and read requests themselves, under our arbiter.

One needs nothing of gunicorn's. One wraps a method of gunicorn's `SyncWorker`, which has to be installed: here it is a
gunicorn of a few lines, and where there is gunicorn itself (`make test-reference` installs it) that, too.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness import Site, until
from tests.harness.needs import gunicorns_packages

pytestmark = pytest.mark.beyond_reference("it is about classes that are gunicorn's there")

APPLICATION = """
import os, time

def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/hang":
        while True:
            time.sleep(0.01)
    if path == "/slow":
        open("slow", "w").close()
        while not os.path.exists("go"):
            time.sleep(0.01)
    body = f"{os.getpid()} {environ.get('by', '')}".encode()
    start_response("200 OK", [("Content-Length", str(len(body))), ("Connection", "close")])
    return [body]
"""

SERVING = """
import os, select

class Serving:
    "A server for one connection at a time: what classes of one's own are, in short."

    def serve_connection(self, client, calls):
        client.setblocking(True)
        line = client.makefile("rb").readline()
        if not line:
            return client.close()
        path = line.split()[1].decode()
        out = []
        def start_response(status, headers, exc_info=None):
            head = "".join(f"{name}: {value}\\r\\n" for name, value in headers)
            out.append(f"HTTP/1.1 {status}\\r\\n{head}\\r\\n".encode())
        body = b"".join(self.wsgi({"PATH_INFO": path, "by": type(self).__mro__[2].__name__}, start_response))
        client.sendall(out[0] + body)
        client.close()
        self.nr += 1
        if self.nr >= self.max_requests:
            self.alive = False

    def accept_and_call(self, calls):
        while self.alive:
            self.notify()
            ready = select.select(self.wait_fds, [], [], self.timeout)[0]
            for each in ready:
                if each in self.sockets:
                    try:
                        client, _ = each.accept()
                    except BlockingIOError:
                        continue
                    calls(client)
                else:
                    os.read(each, 1)
            if self.ppid != os.getppid():
                return
"""

OWN = """
from gunicorn.workers.base import Worker
from serving import Serving

class Own(Serving, Worker):
    def run(self):
        self.accept_and_call(lambda client: self.serve_connection(client, None))
        self.log.info("run of %s is over", self.pid)
"""

HOOKS = """
timeout = 1
def post_worker_init(worker):
    worker.log.info("hook: %s serves %s", type(worker).__name__, [each.getsockname()[1] for each in worker.sockets])
def worker_abort(worker):
    worker.log.info("hook: abort of %s", worker.pid)
def worker_exit(server, worker):
    worker.log.info("hook: exit of %s", worker.pid)
"""


@pytest.fixture(scope="module")
def own() -> Iterator[Site]:
    files = {"own.py": OWN, "serving.py": SERVING, "shop.py": APPLICATION}
    with Site("worker_class = 'own.Own'\n" + HOOKS, app="shop:application", files=files) as server:
        yield server


def pid_of(server: Site, path: str = "/") -> int:
    return int(server.get(path).body.split()[0])


def test_it_serves_and_the_log_says_what_it_does_without(own: Site) -> None:
    pid = pid_of(own)
    assert pid == own.worker_pid()
    own.log.wait(r"Using worker: hosted \(own.Own\)")
    own.log.wait(rf"hook: Own serves \[{own.port}\]")
    (warning,) = own.log.matching(r"WARNING.*own.Own has a run\(\) of its own, without super\(\).run\(\)")
    assert "without the native core" in warning.string


@pytest.mark.parametrize("more", ["", "preload_app = 'mold'\n"])
def test_paths_to_warm_up_are_a_warning(more: str) -> None:
    files = {"own.py": OWN, "serving.py": SERVING, "shop.py": APPLICATION}
    config = f"worker_class = 'own.Own'\nwarmup = ['/']\n{more}"
    with Site(config, app="shop:application", files=files) as server:
        server.log.wait(r"warmup \(from .*\) has no effect with hosted: ")
        assert server.get("/").status == 200


def test_a_reload_lets_it_finish(own: Site) -> None:
    old = pid_of(own)
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(pid_of, own, "/slow")
        until((own.directory / "slow").exists, "the request is being served")
        own.signal(signal.SIGHUP)
        until(lambda: len(own.worker_pids()) == 2, "its successor has booted")
        until(lambda: own.log.matching("Ready: 1 hosted worker")[1:], "its successor serves")
        new = pid_of(own)
        (own.directory / "go").touch()
        assert slow.result(10) == old != new
    own.log.wait(rf"run of {old} is over")
    own.log.wait(rf"hook: exit of {old}")


def test_with_reload_its_successor_is_ready_although_it_has_not_finished() -> None:
    files = {"own.py": OWN, "serving.py": SERVING, "shop.py": APPLICATION}
    with (
        Site("worker_class = 'own.Own'\nreload = True\n" + HOOKS, app="shop:application", files=files) as server,
        ThreadPoolExecutor() as pool,
    ):
        server.log.wait("Ready: 1 hosted worker")
        old = pid_of(server)
        slow = pool.submit(pid_of, server, "/slow")
        until((server.directory / "slow").exists, "the request is being served")
        server.write("shop.py", APPLICATION + "\n")
        server.log.wait("Ready: 1 hosted worker", count=2)
        (server.directory / "go").touch()
        assert slow.result(10) == old


def test_the_timeout_is_about_the_heartbeat(own: Site) -> None:
    """The successor serves before the one that hangs is killed."""
    old = pid_of(own)
    with own.connect() as wire:
        wire.send(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        own.log.wait(rf"WORKER TIMEOUT \(pid:{old}\)")
        own.log.wait(rf"hook: abort of {old}")
    until(lambda: old not in own.worker_pids(), "it is gone")
    assert pid_of(own) != old


def test_signals_to_all_processes_do_not_kill_it(own: Site) -> None:
    """`pkill -HUP` is not for workers."""
    pid = pid_of(own)
    os.kill(pid, signal.SIGHUP)
    os.kill(pid, signal.SIGWINCH)
    assert pid_of(own) == pid


def test_its_own_limit_of_requests_replaces_it() -> None:
    """As often as one likes: it has said so, and that it ends soon after its start is no sign of a defect."""
    files = {"own.py": OWN, "serving.py": SERVING, "shop.py": APPLICATION}
    config = "worker_class = 'own.Own'\nmax_requests = 2\n"
    with Site(config, app="shop:application", files=files) as server:
        pids = [pid_of(server) for _ in range(8)]
        assert len(set(pids)) >= 4
        assert not server.log.matching("crashing right after")


GUNICORN = {
    "__init__.py": "",
    "config.py": """
class Config:
    def __init__(self):
        self.settings = {"keepalive": 2, "max_requests": 0}
    def set(self, name, value):
        self.settings[name] = value
    def __getattr__(self, name):
        if name == "settings" or name not in self.settings:
            raise AttributeError(name)
        return self.settings[name]
""",
    "workers/__init__.py": "",
    "workers/base.py": """
import os, signal, sys
from serving import Serving

class Worker(Serving):
    PIPE = []
    def __init__(self, age, ppid, sockets, app, timeout, cfg, log):
        self.age, self.pid, self.ppid, self.sockets, self.app = age, "[booting]", ppid, sockets, app
        self.timeout, self.cfg, self.log, self.booted, self.alive, self.nr = timeout, cfg, log, False, True, 0
        self.max_requests, self.reloader = sys.maxsize, None
        self.tmp = open(os.devnull)
    def notify(self):
        self.tmp.notify()
    def init_process(self):
        self.PIPE = os.pipe()
        self.wait_fds = self.sockets + [self.PIPE[0]]
        os.set_inheritable(self.tmp.fileno(), False)
        signal.signal(signal.SIGTERM, self.handle_exit)
        os.set_blocking(self.PIPE[1], False)
        signal.set_wakeup_fd(self.PIPE[1])
        self.load_wsgi()
        self.cfg.post_worker_init(self)
        self.run()
    def load_wsgi(self):
        self.wsgi = self.app.wsgi()
    def handle_exit(self, sig, frame):
        self.alive = False
""",
    "workers/sync.py": """
from gunicorn.workers import base

class SyncWorker(base.Worker):
    def run(self):
        self.accept_and_call(lambda client: self.handle_request(None, None, client, None))
    def handle_request(self, listener, req, client, addr):
        self.serve_connection(client, None)
""",
}

TIMED = """
from gunicorn.workers import sync

class Timed(sync.SyncWorker):
    def handle_request(self, listener, req, client, addr):
        self.log.info("before the request, with keepalive %s", self.cfg.keepalive)
        super().handle_request(listener, req, client, addr)
"""


def installed(server: Site) -> str:
    """A gunicorn of a few lines."""
    root = server.directory / "packages"
    for name, text in GUNICORN.items():
        path = root / "gunicorn" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def over_gunicorn(which: str, config: str, shop: str = APPLICATION) -> Site:
    files = {"timed.py": TIMED, "serving.py": SERVING, "shop.py": shop}
    server = Site("", app="shop:application", files=files)
    packages = gunicorns_packages() if which == "itself" else installed(server)
    if packages is None:
        pytest.skip("needs gunicorn itself: make test-reference")
    server._header = server._header.replace("pythonpath = '", f"pythonpath = '{packages},")
    server.configure("worker_class = 'timed.Timed'\nlogger_class = 'gunicorn.glogging.Logger'\n" + config)
    return server


BOTH = pytest.mark.parametrize("which", ["of a few lines", "itself"])


@BOTH
def test_a_class_that_needs_gunicorns_own(which: str) -> None:
    with over_gunicorn(which, "keepalive = 7\n" + HOOKS) as server:
        assert pid_of(server) == server.worker_pid()
        server.log.wait(r"Using worker: hosted \(timed.Timed\)")
        server.log.wait(r"overrides handle_request\(\), which this server does not call: it does its own socket I/O")
        server.log.wait("before the request, with keepalive 7")
        server.log.wait("hook: Timed serves")
        server.hup()
        assert pid_of(server) == server.worker_pid()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        server.log.wait("hook: exit of")


@BOTH
def test_what_cannot_be_loaded_is_shown_until_it_can(which: str) -> None:
    with over_gunicorn(which, "reload = True\n", "1 / 0\n") as server:
        server.log.wait("The application cannot be loaded; its traceback is served until it can")
        assert "ZeroDivisionError" in server.get("/").text
        server.write("shop.py", APPLICATION)
        until(lambda: server.get("/").body.split()[0].isdigit(), "the mended code serves")
