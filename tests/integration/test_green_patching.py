"""Servers whose configuration imports what is to be patched, or that load the application before they fork."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness import GREEN_CLASSES, REFERENCE, Site, until
from tests.harness.server import run
from tests.harness.site import replaced
from tests.harness.tls import TlsServer

pytestmark = pytest.mark.skipif(REFERENCE, reason="it is patched after the configuration was read")

FEW = 2
"""Turns of a sibling in 0.2 s, of 20; one that is held up has none, or one at the ends of the wait."""

PRELOAD = pytest.mark.parametrize("preload", [False, True], ids=["worker", "preload"])

APP = """
import json, os, queue, subprocess, sys, threading, time
import requests

session = requests.Session()
started = queue.Queue()
threading.Thread(target=lambda: (time.sleep(0.02), started.put("thread"))).start()
loaded = [started.get(timeout=5), subprocess.check_output(["echo", "program"], text=True).strip()]
loader = os.getpid()
counted = []

def count():
    while True:
        time.sleep(0.01)
        counted.append(1)

threading.Thread(target=count, daemon=True).start()

def application(environ, start_response):
    path = environ["PATH_INFO"]
    before = len(counted)
    if path == "/https":
        reply = session.get(os.environ["HTTPS_URL"] + "?0.2", verify=os.environ["HTTPS_CERTIFICATE"])
        found = reply.text
    elif path == "/program":
        found = subprocess.run(["sleep", "0.2"]).returncode
    elif path == "/config":
        found = sys.modules["__config__"].fetch()
    elif path == "/sleep":
        time.sleep(0.2)
        found = "slept"
    else:
        found = loaded
    others = len(counted) - before
    body = json.dumps({"found": found, "pid": os.getpid(), "loaded_by": loader, "others": others}).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
"""

CONFIG = """
import os, queue, socket, ssl, subprocess, threading
import requests, urllib3
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from urllib3.util.ssl_ import create_urllib3_context

context = create_urllib3_context()
context.load_verify_locations(os.environ["HTTPS_CERTIFICATE"])
lock = threading.Lock()
pool = urllib3.PoolManager(ssl_context=context)

def fetch():
    with lock:
        return pool.request("GET", os.environ["HTTPS_URL"] + "?0.2").data.decode()
"""

KEPT = (
    r"\[WARNING\] The module library was imported before it could be patched for (\w+), and still has the class "
    r"Connection \(over the original socket\.socket\)\. These block all requests"
)

FILES = {"early_app.py": APP, "library.py": "import socket\n\nclass Connection(socket.socket):\n    pass\n"}


@pytest.fixture(scope="module")
def https() -> Iterator[dict[str, str]]:
    with TlsServer() as server:
        yield {"HTTPS_URL": server.url, "HTTPS_CERTIFICATE": str(server.certificate)}


def site(
    worker_class: str,
    https: dict[str, str],
    more: str = "",
    *,
    preload: bool = False,
    workers: int = 1,
    fresh: bool = False,
) -> Site:
    """`fresh`: nothing of the class is imported before the configuration is read."""
    text = f"worker_class = {worker_class!r}\nworkers = {workers}\npreload_app = {preload}\n{CONFIG}{more}"
    return Site(text, app="early_app:application", workers=workers, files=FILES, env=https, fresh=fresh)


@GREEN_CLASSES
@PRELOAD
def test_what_the_configuration_imports_is_patched_like_everything_else(
    worker_class: str, preload: bool, https: dict[str, str]
) -> None:
    with site(worker_class, https, preload=preload, fresh=True) as server:
        reply = server.get("/").json()
        assert reply["found"] == ["thread", "program"]
        assert reply["loaded_by"] == (server.pid if preload else server.worker_pid())
        for target, found in [
            ("/https", "secure"),
            ("/config", "secure"),
            ("/program", 0),
            ("/sleep", "slept"),
        ]:
            reply = server.get(target).json()
            assert reply["found"] == found
            assert reply["others"] >= FEW, f"{target} held up the others"
        assert server.log.matching("WARNING|Warning|Recursion|Traceback") == []


@GREEN_CLASSES
def test_workers_of_a_patched_arbiter_are_replaced_reloaded_and_stopped(
    worker_class: str, https: dict[str, str]
) -> None:
    with site(worker_class, https, "import library\n", preload=True, workers=2) as server:
        (found,) = server.log.wait(KEPT)
        assert found[1] == worker_class
        served: set[int] = set()
        with ThreadPoolExecutor(8) as clients:  # one at a time may all go to the same worker

            def both_serve() -> bool:
                served.update(reply.json()["pid"] for reply in clients.map(server.get, ["/"] * 8))
                return len(served) == 2

            until(both_serve, "both workers serve")
        replaced(server, lambda: [os.kill(pid, signal.SIGKILL) for pid in server.worker_pids()])
        server.hup()
        for target in ("/program", "/https", "/program"):
            assert server.get(target).json()["others"] >= FEW
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0


@GREEN_CLASSES
def test_hooks_of_a_patched_arbiter_may_wait_and_start_programs(worker_class: str, https: dict[str, str]) -> None:
    hooks = """
def when_ready(server):
    server.log.info("Ready, says %s", subprocess.check_output(["echo", "program"], text=True).strip())

def pre_fork(server, worker):
    sleep(0.05)
    subprocess.run(["true"], check=True)
    server.log.info("Forking after a while")
"""
    with site(worker_class, https, hooks, preload=True) as server:
        server.log.wait("Ready, says program")
        for forks in (2, 3):
            assert server.get("/program").json()["found"] == 0, "it has booted: one that dies before ends the service"
            replaced(server, lambda: os.kill(server.worker_pid(), signal.SIGKILL))
            # What looked like the new worker may be the hook's program: that is a child of the arbiter, too.
            server.log.wait("Forking after a while", count=forks)
        assert server.get("/program").json()["found"] == 0
        server.hup()
        assert server.get("/program").json()["found"] == 0
        assert len(server.log.matching("Forking after a while")) == 4


@GREEN_CLASSES
def test_hooks_that_wait_hold_up_no_request_and_threads_of_the_arbiter_are_real(
    worker_class: str, https: dict[str, str]
) -> None:
    hooks = """
import library

def when_ready(server):
    def serve_metrics():
        sleep(0.05)
        server.log.info("Metrics are served by %s", os.getpid())
    threading.Thread(target=serve_metrics).start()

def worker_int(worker):
    worker.log.info("Saying goodbye")
    sleep(0.2)
    worker.log.info("Said goodbye")

accesslog = "access.log"
"""
    with site(worker_class, https, hooks) as server:
        assert server.get("/").status == 200
        (found,) = server.log.wait(KEPT)
        assert found[1] == worker_class
        server.log.wait(f"Metrics are served by {server.pid}$")
        log = server.directory / "access.log"
        log.rename(server.directory / "rotated.log")
        os.kill(server.worker_pid(), signal.SIGUSR1)
        until(
            lambda: server.get("/").status == 200 and log.exists() and "GET /" in log.read_text(), "a new log is used"
        )
        os.kill(server.worker_pid(), signal.SIGINT)
        server.log.wait("Said goodbye")
        assert server.log.matching("Traceback|ERROR") == []
        assert len(server.log.matching("Metrics are served")) == 1


@GREEN_CLASSES
def test_a_configuration_that_patches_by_itself_does_no_harm(worker_class: str, https: dict[str, str]) -> None:
    own = {
        "gevent": "from gevent import monkey\nmonkey.patch_all()\n",
        "eventlet": "import warnings\nwarnings.simplefilter('ignore')\nimport eventlet\neventlet.monkey_patch()\n",
    }
    text = own[worker_class] + f"worker_class = {worker_class!r}\n" + CONFIG
    with Site(text, app="early_app:application", files={"early_app.py": APP}, env=https, fresh=True) as server:
        for target in ("/https", "/config", "/program"):
            assert server.get(target).json()["others"] >= FEW
        replaced(server, lambda: os.kill(server.worker_pid(), signal.SIGKILL))
        server.hup()
        assert server.get("/sleep").json()["others"] >= FEW


@GREEN_CLASSES
def test_a_change_is_noticed(worker_class: str, https: dict[str, str]) -> None:
    with site(worker_class, https, "reload = True\nreload_engine = 'poll'\n") as server:
        assert server.get("/sleep").json()["others"] >= FEW
        replaced(server, lambda: server.write("early_app.py", APP.replace('"slept"', '"slept anew"')))
        until(lambda: server.get("/sleep").json()["found"] == "slept anew", "the new code serves")


@GREEN_CLASSES
def test_a_check_patches_as_well(worker_class: str, tmp_path: Path) -> None:
    (tmp_path / "checked.py").write_text(
        "import select, sys\nassert not hasattr(select, 'epoll')\ndef application(environ, start_response): ...\n"
    )
    (tmp_path / "conf.py").write_text("import ssl, socket, requests\nclass Mine(socket.socket): pass\n")
    done = run("-k", worker_class, "-c", "conf.py", "--check-config", "checked:application", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f"Warning: The configuration file conf.py was executed before it could be patched for {worker_class}"
    )


HOOKED = """
import os, threading, time

held = made = threading.Lock()
name = {name!r}

def pre_fork(server, worker):
    global made
    import hooked
    made = threading.Lock()
"""
HOOKED_APP = """
import sys, threading, time
import hooked

def application(environ, start_response):
    conf = sys.modules["__config__"]
    kind = type(threading.Lock())
    found = conf.name, hooked.sleep is time.sleep, type(conf.held) is kind, type(conf.made) is kind
    start_response("200 OK", [])
    return [repr(found).encode()]
"""


@GREEN_CLASSES
def test_what_a_hook_makes_before_each_fork_is_set_right_too(worker_class: str) -> None:
    files = {"hooked.py": "from time import sleep\n", "hooked_app.py": HOOKED_APP}
    config = f"worker_class = {worker_class!r}\n{HOOKED}"
    with Site(config.replace("{name!r}", "'old'"), app="hooked_app:application", files=files) as server:
        assert server.get("/").body == b"('old', True, True, True)"
        replaced(server, lambda: os.kill(server.worker_pid(), signal.SIGKILL))
        assert server.get("/").body == b"('old', True, True, True)"
        server.configure(config.replace("{name!r}", "'new'"))
        server.hup()
        assert server.get("/").body == b"('new', True, True, True)"


HEAP = """
import json, re
from pathlib import Path

class Node:
    def __init__(self, number):
        self.number, self.next = number, None

    def visit(self, other):
        self.next = other

def resident():
    return int(re.search(r"^Rss:\\s+(\\d+)", Path("/proc/self/smaps_rollup").read_text(), re.M)[1])

before = resident()
nodes = [Node(number) for number in range(%d)]
functions = [lambda self, other=None: other for _ in nodes]
grown = resident() - before
"""
HEAP_APP = """
import re
from pathlib import Path
import heap

def application(environ, start_response):
    written = int(re.search(r"^Private_Dirty:\\s+(\\d+)", Path("/proc/self/smaps_rollup").read_text(), re.M)[1])
    start_response("200 OK", [])
    return [f"{written} {heap.grown}".encode()]
"""


@GREEN_CLASSES
def test_workers_do_not_write_to_what_the_configuration_has_imported(worker_class: str) -> None:
    """Each would have a copy of its own of every page that it writes to, if only a reference count."""
    text = f"import heap\nworker_class = {worker_class!r}\n"

    def measured(count: int) -> tuple[int, int]:
        files = {"heap.py": HEAP % count, "heap_app.py": HEAP_APP}
        with Site(text, app="heap_app:application", files=files, fresh=True) as server:
            written, grown = map(int, server.get("/").body.split())
            return written, grown

    (few, _), (many, grown) = measured(1), measured(100_000)
    assert many - few < grown / 2, f"{many - few} of {grown} kB were written to"


PLUGIN = {
    "METADATA": "Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n",
    "entry_points.txt": "[gevent.plugins.monkey.did_patch_all]\nplug = plug:patched\n",
}
PLUGGED = {
    "plug.py": "import os\n\ncalls = []\n\ndef patched(event):\n    calls.append(os.getpid())\n",
    "plugged.py": """\
import os
import plug

def application(environ, start_response):
    start_response("200 OK", [])
    return [repr(plug.calls == [os.getpid()]).encode()]
""",
}


@pytest.mark.parametrize("fresh", [True, False])
def test_a_plugin_of_gevents_is_called_once_in_each_worker(fresh: bool, tmp_path: Path) -> None:
    folder = tmp_path / "plug-1.0.dist-info"
    folder.mkdir()
    for name, text in PLUGIN.items():
        (folder / name).write_text(text)
    # By the file and not by PYTHONPATH, with which no server is forked from one that has its imports.
    config = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nworker_class = 'gevent'\n"
    with Site(config, app="plugged:application", files=PLUGGED, fresh=fresh) as server:
        assert server.get("/").body == b"True"
        first = server.worker_pids()
        os.kill(server.pid, signal.SIGHUP)
        until(lambda: len(server.worker_pids()) == 1 and server.worker_pids() != first, "another worker")
        assert server.get("/").body == b"True"
