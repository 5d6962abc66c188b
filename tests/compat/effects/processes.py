"""Sockets, workers and mechanics: an effect for each setting, `sees_<name>`."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.compat.effects.common import FACTS, fact_site, facts, files_below, printed
from tests.compat.effects.shared import shared
from tests.harness import CLOSE, Site, command, elapse, module, proc, until
from tests.harness.deadline import AT_ONCE
from tests.harness.molds import Molded
from tests.harness.server import free_port
from tests.harness.wire import request


def sees_config(directory: Path) -> None:
    path = directory / "another.py"
    path.write_text("raw_env = ['TRICORN_A=another']\n")
    with fact_site(path) as server:
        assert facts(server)["env"]["TRICORN_A"] == "another"


def sees_wsgi_app(directory: Path) -> None:
    with Site("wsgi_app = 'mine:application'\n", app="", files={"mine.py": module("by wsgi_app")}) as server:
        assert server.get("/").body == b"by wsgi_app"


INI = """
[app:main]
paste.app_factory = described:make
text = main

[app:admin]
paste.app_factory = described:make
text = admin %(greeting)s

[loggers]
keys = root, server

[handlers]
keys = file

[formatters]
keys =

[logger_root]
level = INFO
handlers = file

[logger_server]
qualname = gunicorn.error
level = INFO
handlers = file

[handler_file]
class = FileHandler
args = ("by paste.log",)
"""

DESCRIBED = """
def make(global_conf, text):
    def application(environ, start_response):
        start_response("200 OK", [("Content-Length", str(len(text)))])
        return [text.encode()]
    return application
"""


def sees_paste(directory: Path) -> None:
    """The application, and the loggers."""
    files = {"described.py": DESCRIBED, "main.ini": INI.replace("%(greeting)s", "")}
    with Site("paste = 'main.ini'\n", app="", files=files, wait=False) as server:
        until(server._accepts, "the server listens")
        assert server.get("/").body == b"main"
        log = server.directory / "by paste.log"
        until(lambda: "Booting worker" in log.read_text(), "the log is where the file says")


def sees_raw_paste_global_conf(directory: Path) -> None:
    files = {"described.py": DESCRIBED, "main.ini": INI[: INI.index("[loggers]")]}
    with Site(
        "", app="", files=files, extra=("--paste", "main.ini#admin", "--paste-global", "greeting=hello")
    ) as server:
        assert server.get("/").body == b"admin hello"


def sees_bind(directory: Path) -> None:
    port, path = free_port(), directory / "s"
    with Site(f"bind = ['127.0.0.1:{port}', 'unix:{path}']\n", wait=False) as server:
        for address in (("127.0.0.1", port), str(path)):
            server.address = address
            server.wait_ready()
            assert server.get("/hello").status == 200


def sees_worker_class_strict(directory: Path) -> None:
    """The class is a whole server of its own; the rest is told where hosted classes are tested."""
    text = "from tricorn.workers.base import Worker\nclass Own(Worker):\n    def run(self): ...\n"
    config = "worker_class = 'own.Own'\nworker_class_strict = True\n"
    with Site(config, files={"own.py": text}, wait=False) as server:
        assert server.wait_exit() == 1
        assert "has a run() of its own" in server.log.text


def listening(port: int) -> list[int]:
    """The accept queues on a port: their greatest lengths."""
    text = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[2]) for line in text.splitlines()]


def sees_backlog(various: Site) -> None:
    assert listening(various.port) == [17]


def sees_workers(directory: Path) -> None:
    with Site("workers = 3\n", workers=3) as server:
        assert len(server.worker_pids()) == 3


def sees_worker_class(narrow: Site) -> None:
    narrow.log.wait("Using worker: gthread")


def together(server: Site, count: int, directory: Path, least: int) -> int:
    """How many of `count` requests are in the application at once, a second after the first `least` of them."""
    gate = directory / "gate"
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(server.connect()) for _ in range(count)]
        for wire in wires:
            wire.send(request("GET", f"/gate?open={gate}", CLOSE))
        inside = lambda: len(list(directory.glob("gate.in.*")))  # noqa: E731
        until(lambda: inside() >= least, f"{least} are in")
        elapse(1)
        seen = inside()
        gate.touch()
        for wire in wires:
            assert wire.reply().status == 200
    return seen


def sees_threads(various: Site, directory: Path) -> None:
    assert together(various, 5, directory, 3) == 3


def sees_worker_connections(directory: Path) -> None:
    with Site("worker_class = 'gthread'\nthreads = 4\nworker_connections = 2\n") as server:
        assert together(server, 4, directory, 1) <= 2


def sees_max_requests(directory: Path) -> None:
    with Site("max_requests = 3\n") as server:
        pids = set()

        def another() -> bool:
            pids.add(server.get("/pid").body)
            return len(pids) > 1

        until(another, "another worker serves")
        server.log.wait("Autorestarting worker after current request")


def sees_max_requests_jitter(directory: Path) -> None:
    """With a jitter that is great beside the number, workers do not all leave after the same count."""
    with Site("workers = 1\nmax_requests = 1\nmax_requests_jitter = 40\n") as server:
        counts: dict[bytes, int] = {}

        def different() -> bool:
            with contextlib.suppress(OSError, AssertionError):
                pid = server.get("/pid").body
                counts[pid] = counts.get(pid, 0) + 1
            return len(set(counts.values())) > 1 and len(counts) > 2

        until(different, "workers leave after different numbers of requests")
        assert max(counts.values()) > 1


def sees_timeout(directory: Path) -> None:
    with Site("timeout = 1\nthreads = 2\n", app="stuck:application") as server, server.connect() as wire:
        wire.send(request("GET", "/sleep"))
        server.log.wait(r"WORKER TIMEOUT \(pid:\d+\)")


def sees_graceful_timeout(directory: Path) -> None:
    with Site("graceful_timeout = 1\n") as server, server.connect() as wire:
        wire.send(request("GET", f"/gate?open={directory / 'never'}"))
        until(lambda: list(directory.glob("never.in.*")), "the request is in the application")
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait_exit(AT_ONCE) == 0
        assert time.monotonic() - began > 0.8


def sees_keepalive(impatient: Site) -> None:
    with impatient.connect() as wire:
        wire.get("/hello")
        began = time.monotonic()
        wire.closed()
        assert 0.5 < time.monotonic() - began < 1.9


def sees_preload_app(directory: Path) -> None:
    with fact_site("preload_app = True\n") as server:
        assert facts(server)["loaded_in"] == server.pid
    with fact_site("preload_app = 'mold'\n") as server:
        loaded_in = facts(server)["loaded_in"]
        assert loaded_in in proc.children(server.pid)
        assert loaded_in != facts(server)["pid"]


def sees_refork(directory: Path) -> None:
    with Molded("refork = 2\nworkers = 2\n", app=FACTS, workers=2) as server:
        first = server.mold_pid()

        def is_another() -> bool:
            facts(server)
            return server.log.matching("is the mold now") != [] and first not in proc.children(server.pid)

        until(is_another, "a worker is the mold")


def sees_warmup(directory: Path) -> None:
    with fact_site("warmup = ['/a', '/b']\nloglevel = 'debug'\n") as server:
        server.log.wait("Warm-up: /a answered 200")
        server.log.wait("Warm-up: /b answered 200")


def sees_sendfile(various: Site) -> None:
    """Without it the same bytes come; the kernel's call is told by the record's own unit tests."""
    assert various.get("/hello").status == 200
    assert "sendfile" in printed("sendfile = False\n")


def sees_reuse_port(directory: Path) -> None:
    with Site("reuse_port = True\nworkers = 2\n", workers=2) as server:
        until(lambda: len(listening(server.port)) >= 2, "every worker listens itself")
        assert server.get("/hello").status == 200


def sees_chdir(directory: Path) -> None:
    (directory / "here.py").write_text(module("from chdir"))
    with Site(f"chdir = '{directory}'\npythonpath = None\n", app="here:application") as server:
        assert server.get("/").body == b"from chdir"


def sees_daemon(directory: Path) -> None:
    pidfile = directory / "pid"
    config = f"daemon = True\npidfile = '{pidfile}'\nerrorlog = '{directory / 'log'}'\n"
    with fact_site(config, wait=False) as server:
        assert server.process.wait(60) == 0
        until(lambda: pidfile.exists() and pidfile.read_text().strip(), "the pidfile")
        master = int(pidfile.read_text())
        try:
            until(server._accepts, "it accepts")
            assert facts(server)["ppid"] == master != server.pid
            assert os.getsid(master) != server.pid
            assert os.readlink(f"/proc/{master}/fd/0") == "/dev/null"
        finally:
            os.kill(master, signal.SIGTERM)
            until(lambda: not proc.is_running(master), "the daemon stops")
        assert not pidfile.exists()


def sees_raw_env(trusting: Site) -> None:
    assert facts(trusting)["env"]["TRICORN_A"] == "1=2"


def sees_pidfile(directory: Path) -> None:
    pidfile = directory / "pid"
    with Site(f"pidfile = '{pidfile}'\n") as server:
        assert int(pidfile.read_text()) == server.pid
    assert not pidfile.exists()


def sees_worker_tmp_dir(directory: Path) -> None:
    """Where the system's directory cannot be written, large bodies are kept there. It need not be there."""
    with Site("worker_tmp_dir = '/nonexistent/dir'\n") as server:
        assert server.get("/hello").status == 200
    gate = directory / "gate"
    settings = f"worker_class = 'gthread'\nworker_tmp_dir = '{directory}'\nbody_buffer_size = 1000\n"
    with Site(settings, env={"TMPDIR": "/nonexistent/dir"}) as server, server.connect() as wire:
        wire.send(request("POST", f"/gate?open={gate}", body=b"x" * 500_000))
        until(lambda: list(directory.glob("gate.in.*")), "the request is in the application")
        assert files_below(server, directory)
        gate.touch()
        assert wire.reply().status == 200


# The interpreter may be installed where only its owner can read: everything is imported before the change.
PRELOADED = "preload_app = True\n"


def other_user() -> pwd.struct_passwd:
    if os.geteuid():
        pytest.skip("only root can become another user")
    return pwd.getpwuid(65534)


@shared
def as_another_user() -> Site:
    user = other_user()
    site = fact_site(f"user = '{user.pw_name}'\ngroup = {user.pw_gid}\ninitgroups = True\n{PRELOADED}")
    site.directory.chmod(0o755)  # readable by everybody
    return site


def sees_user(as_another_user: Site) -> None:
    user = other_user()
    assert facts(as_another_user)["uid"] == user.pw_uid
    assert os.stat(f"/proc/{as_another_user.pid}").st_uid == 0


def sees_group(as_another_user: Site) -> None:
    assert facts(as_another_user)["gid"] == other_user().pw_gid


def sees_initgroups(as_another_user: Site) -> None:
    user = other_user()
    groups = set(os.getgrouplist(user.pw_name, user.pw_gid))
    assert sorted(facts(as_another_user)["groups"]) == sorted(groups)


def sees_umask(directory: Path) -> None:
    path = directory / "s"
    files = [directory / name for name in ("accesses", "pid")]
    settings = "".join(f"{name} = '{file}'\n" for name, file in zip(("accesslog", "pidfile"), files, strict=True))
    with Site(f"umask = 0o027\nbind = 'unix:{path}'\n{settings}", app=FACTS, wait=False) as server:
        server.address = str(path)
        server.wait_ready()
        assert path.stat().st_mode & 0o777 == 0o750
        assert server.get("/").status == 200
        assert [file.stat().st_mode & 0o777 for file in files] == [0o640] * 2
        files[0].rename(directory / "rotated")
        server.signal(signal.SIGUSR1)
        until(files[0].exists, "the log file is opened anew")
        assert files[0].stat().st_mode & 0o777 == 0o640


def sees_tmp_upload_dir(spooling: Site, directory: Path) -> None:
    gate = directory / "gate"
    with spooling.connect() as wire:
        wire.send(request("POST", f"/gate?open={gate}", body=b"x" * 500_000))
        until(lambda: list(directory.glob("gate.in.*")), "the request is in the application")
        assert files_below(spooling, spooling.directory)
        gate.touch()
        assert wire.reply().status == 200


def sees_pythonpath(directory: Path) -> None:
    (directory / "there.py").write_text(module("from pythonpath"))
    with Site(f"pythonpath = '{directory}'\n", app="there:application") as server:
        assert server.get("/").body == b"from pythonpath"


def sees_control_socket_disable(directory: Path) -> None:
    with Site("control_socket_disable = True\n", env={"HOME": str(directory)}) as server:
        assert server.get("/hello").status == 200
    assert not list(directory.iterdir())


def titled() -> None:
    """Titles need a package that is no requirement."""
    program = [command()[0], "-c", "import setproctitle"]
    if subprocess.run(program, capture_output=True, check=False).returncode:
        pytest.skip("setproctitle is not installed")


NAMED = "def when_ready(server):\n    server.log.info('name %s', server.proc_name)\n"


def sees_proc_name(various: Site) -> None:
    various.log.wait("name shop")
    titled()
    until(lambda: "master [shop]" in proc.command_line(various.pid), "the master's title")
    until(lambda: "worker [shop]" in proc.command_line(various.worker_pid()), "the worker's title")


def sees_default_proc_name(directory: Path) -> None:
    """It is the application's name: what the setting says is replaced by it, as with gunicorn."""
    with Site(f"default_proc_name = 'fallback'\n{NAMED}") as server:
        (match,) = server.log.wait("name (.*)")
        assert match[1] in ("fallback", "gallery:application")
    assert "fallback" in printed("default_proc_name = 'fallback'\n")


def sees_title_prefix(spooling: Site) -> None:
    titled()
    until(lambda: proc.command_line(spooling.pid) == "gunicorn: master [shop]", "the master's title")
    until(lambda: proc.command_line(spooling.worker_pid()) == "gunicorn: worker [shop]", "the worker's title")
