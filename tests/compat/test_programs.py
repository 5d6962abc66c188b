"""Programs that start gunicorn themselves, as they are found in projects: unchanged, under `tricorn exec`.

Each is a project's way of starting it, in our words and without the rest of the project. `make test-reference` runs the
same programs with gunicorn.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.harness import REFERENCE, Server, until
from tests.harness.server import command

STARTED = [] if REFERENCE else [*command(), "exec"]
PYTHON = command()[0] if REFERENCE else sys.executable


class Program(Server):
    """A program of one file, which finds its address in the variable BIND."""

    def __init__(self, text: str, argv: Sequence[str], env: Mapping[str, str], workers: int) -> None:
        super().__init__(chdir=None, workers=workers, fresh=True, env=env)
        self._env |= {"BIND": self.bind, "PATH": f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}"}
        self.argv = [*STARTED, *(each.format(python=PYTHON, bind=self.bind) for each in argv)]
        self.directory.joinpath("program.py").write_text(APPLICATION + text)
        self.directory.joinpath("shop.py").write_text(APPLICATION)


APPLICATION = """
import json, os, sys

BIND = os.environ["BIND"]

def application(environ, start_response):
    facts = {"pid": os.getpid(), "ppid": os.getppid(), "software": os.environ.get("SERVER_SOFTWARE", ""),
             "multithread": environ["wsgi.multithread"], "notes": list(NOTES)}
    body = json.dumps(facts).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]

NOTES = []
"""


@dataclass(frozen=True)
class Case:
    source: str
    """Where it is from."""
    text: str
    argv: tuple[str, ...] = ("{python}", "program.py")
    env: Mapping[str, str] | None = None
    workers: int = 1
    multithread: bool = False
    notes: tuple[str, ...] = ()
    reference: str = ""
    """Why gunicorn itself cannot run it."""


OPTIONS = """
from gunicorn.app.base import BaseApplication

class Standalone(BaseApplication):
    def __init__(self, app, options=None):
        self.options = options or {}
        self.application = app
        super().__init__()

    def load_config(self):
        known = {key: value for key, value in self.options.items() if key in self.cfg.settings and value is not None}
        for key, value in known.items():
            self.cfg.set(key.lower(), value)

    def load(self):
        return self.application
"""

PROGRAMS = {
    "recipe": Case(
        "gunicorn's documentation, Custom Application; prometheus-pve/prometheus-pve-exporter src/pve_exporter/http.py",
        OPTIONS + 'Standalone(application, {"bind": BIND, "workers": 2, "no_such_setting": 1, "timeout": None}).run()',
        workers=2,
    ),
    "loads in the worker": Case(
        "SeldonIO/seldon-core python/seldon_core/app.py",
        OPTIONS
        + """
class Model:
    def load(self):
        NOTES.append("loaded")

class UserModelApplication(Standalone):
    def __init__(self, app, model, options):
        self.model = model
        super().__init__(app, options)

    def load(self):
        self.model.load()
        return self.application

def post_worker_init(worker):
    NOTES.append("initialized")

options = {"bind": BIND, "accesslog": "-", "loglevel": "debug", "threads": 3, "post_worker_init": post_worker_init}
UserModelApplication(application, Model(), options).run()
""",
        multithread=True,
        notes=("loaded", "initialized"),
    ),
    "sets by keyword": Case(
        "GoogleCloudPlatform/functions-framework-python src/functions_framework/_http/gunicorn.py",
        """
import gunicorn.app.base
from gunicorn.workers.gthread import ThreadWorker

class GunicornApplication(gunicorn.app.base.BaseApplication):
    def __init__(self, app, **options):
        self.options = {"bind": BIND, "workers": int(os.environ.get("WORKERS", 1)), "threads": 4, "loglevel": "info",
                        "limit_request_line": 0, "timeout": 0} | options
        self.app = app
        super().__init__()

    def load_config(self):
        for key, value in self.options.items():
            self.cfg.set(key, value)

    def load(self):
        return self.app

GunicornApplication(application).run()
""",
        multithread=True,
    ),
    "command line of its own": Case(
        "pecan/pecan pecan/commands/serve.py",
        """
from gunicorn.app.wsgiapp import WSGIApplication

class PecanApplication(WSGIApplication):
    def init(self, parser, opts, args):
        if len(args) != 1:
            parser.error("No configuration file was specified.")
        NOTES.append(args[0])
        NOTES.append(opts.threads)
        return {"bind": BIND, "threads": 1}

    def load(self):
        return application

PecanApplication("%(prog)s [OPTIONS] config.py").run()
""",
        argv=("{python}", "program.py", "--threads", "2", "config.py"),
        multithread=True,
        notes=("config.py", "2"),
        reference="gunicorn 27 needs an `app_uri`, which this program does not set",
    ),
    "management command": Case(
        "a Django management command that hands its arguments on: DjangoApplication(WSGIApplication).init",
        """
from gunicorn.app.wsgiapp import WSGIApplication

class DjangoApplication(WSGIApplication):
    def init(self, parser, opts, args):
        super().init(parser, opts, ["shop:application"] + args[1:])

DjangoApplication("%(prog)s [OPTIONS]").run()
""",
        argv=("{python}", "program.py", "rungunicorn", "-b", "{bind}"),
    ),
    "arguments of the process": Case(
        "azureml-inference-server-http: sys.argv is made, then the command is run",
        """
from gunicorn.app import wsgiapp

sys.argv = ["gunicorn", "-b", BIND, "--threads", "2", "shop:application"]
sys.exit(wsgiapp.run())
""",
        multithread=True,
    ),
    "configuration of a module": Case(
        "a command line tool with `web`: sys.argv only while WSGIApplication is made, -c python:MODULE",
        """
import types
from gunicorn.app.wsgiapp import WSGIApplication

module = types.ModuleType("web_config")
open("web_config.py", "w").write(f"bind = {BIND!r}\\nwsgi_app = 'shop:application'\\n")
sys.path.insert(0, os.getcwd())
kept, sys.argv = sys.argv[:], sys.argv[:1] + ["-c", "python:web_config"]
server = WSGIApplication(prog="shop")
sys.argv = kept
server.run()
""",
    ),
    "framework's server": Case(
        "bottlepy/bottle bottle.py, GunicornServer",
        """
from gunicorn.app.base import BaseApplication

def run(handler, host, port, **options):
    config = {"bind": f"{host}:{int(port)}"} | options

    class GunicornApplication(BaseApplication):
        def load_config(self):
            for key, value in config.items():
                self.cfg.set(key, value)

        def load(self):
            return handler

    GunicornApplication().run()

run(application, *BIND.split(":"), workers=2)
""",
        workers=2,
    ),
    "arbiter": Case(
        "programs that start gunicorn.arbiter.Arbiter(app) themselves, and look at its constants",
        OPTIONS
        + """
from gunicorn.arbiter import Arbiter

assert Arbiter.APP_LOAD_ERROR == 4 and len(Arbiter.SIGNALS) == 9
Arbiter(Standalone(application, {"bind": BIND, "preload_app": True})).run()
""",
    ),
    "paste's server": Case(
        "Pyramid's pserve: [server:main] of a PasteDeploy file, whose keys are settings",
        """
from paste.deploy import loadserver

open("production.ini", "w").write(f'''
[server:main]
paste.server_runner = gunicorn.app.pasterapp:serve
host = {BIND.partition(":")[0]}
port = {BIND.partition(":")[2]}
workers = 2
threads = 2
''')
loadserver("config:production.ini", relative_to=os.getcwd())(application)
""",
        workers=2,
        multithread=True,
    ),
    "subprocess": Case(
        "mlflow/mlflow mlflow/utils/process.py; apache/airflow 2, airflow webserver: `python -m gunicorn` as a child",
        """
import os
os.execv(sys.executable, [sys.executable, "-m", "gunicorn", "-b", BIND, "-w", "1", "shop:application"])
""",
    ),
    "shell script": Case(
        "entry points of container images: exec gunicorn …",
        "",
        argv=("sh", "-c", "exec gunicorn --bind=$BIND --threads 2 shop:application"),
        multithread=True,
    ),
}


def param(name: str) -> Any:
    why = PROGRAMS[name].reference
    return pytest.param(name, marks=[pytest.mark.beyond_reference(why)] if why else [])


@pytest.mark.parametrize("name", [param(name) for name in PROGRAMS])
def test_a_program_that_starts_gunicorn(name: str) -> None:
    case = PROGRAMS[name]
    with Program(case.text, case.argv, case.env or {}, case.workers) as server:
        facts: dict[str, Any] = server.get("/").json()
        assert facts["pid"] in server.worker_pids()
        assert facts["ppid"] == server.pid
        assert facts["software"].startswith("gunicorn/")
        assert facts["multithread"] == case.multithread
        assert tuple(facts["notes"]) == case.notes
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0


@pytest.mark.beyond_reference("gunicorn waits for the thread")
@pytest.mark.parametrize("case", ["recipe", "an arbiter of its own"])
def test_a_thread_of_the_programs_does_not_keep_its_server(case: str) -> None:
    start = {"recipe": "Standalone({}).run()", "an arbiter of its own": "Arbiter(Standalone({})).run()"}[case]
    thread = """
import threading, time
from gunicorn.arbiter import Arbiter

threading.Thread(target=time.sleep, args=(600,), name="consumer").start()
"""
    with program(OPTIONS + thread + start.format('application, {"bind": BIND, "preload_app": True}')) as it:
        it.signal(signal.SIGTERM)
        assert it.wait_exit() == 0
        assert it.log.matching(rf"Process {it.pid} exits with threads still running .*: consumer")


def program(text: str, *, workers: int = 1) -> Program:
    return Program(text, ("{python}", "program.py"), {}, workers)


READS = """
from gunicorn.app.base import BaseApplication

open("workers", "a").write("1")

def read():
    return open("workers").read()

class Standalone(BaseApplication):
    def load_config(self):
        self.cfg.set("bind", BIND)
        self.cfg.set("workers", {number})

    def load(self):
        return application

Standalone().run()
"""


def test_a_reload_asks_the_program_again() -> None:
    with program(READS.format(number="int(read())")) as it:
        before = it.worker_pids()
        (it.directory / "workers").write_text("2")
        it.signal(signal.SIGHUP)
        it.log.wait("Hang up: Master")
        until(lambda: len(it.worker_pids()) == 2 and not set(before) & set(it.worker_pids()), "two new workers")


@pytest.mark.beyond_reference("gunicorn ends")
def test_a_reload_that_fails_leaves_all_as_it_was() -> None:
    with program(READS.format(number="read()")) as it:
        (it.directory / "workers").write_text("many")
        it.signal(signal.SIGHUP)
        it.log.wait("The program failed to read its configuration")
        assert it.get("/").json()["pid"] in it.worker_pids()


def test_a_program_with_a_value_that_is_none_says_so_and_ends() -> None:
    it = program(OPTIONS + 'Standalone(application, {"bind": BIND, "workers": "many"}).run()')
    it._wait = False
    with it:
        assert it.wait_exit() == 1
        assert "Error: " in it.log.text


@pytest.mark.beyond_reference("gunicorn leaves its handlers")
def test_signals_are_the_programs_again_when_the_server_does_not_start() -> None:
    text = """
import signal
before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
try:
    Standalone(application, {"bind": BIND, "pidfile": "/nonexistent/pid"}).run()
except SystemExit:
    after = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    print("the handlers are", "the same" if after == before else after, flush=True)
"""
    it = program(OPTIONS + text)
    it._wait = False
    with it:
        assert it.wait_exit() == 0
        it.out.wait("the handlers are the same")


AIRFLOW = """
import signal, time
from gunicorn.arbiter import Arbiter

class AirflowArbiter(Arbiter):
    def __init__(self, app):
        super().__init__(app)
        self.interval, self.batch = 0.01, min(5, self.num_workers)
        self._last = time.monotonic()
        self._to_replace = None

    def manage_workers(self):
        super().manage_workers()
        if self._to_replace is None:
            if time.monotonic() - self._last >= self.interval and len(self.WORKERS) == self.num_workers:
                self._to_replace = set(self.WORKERS)
                self.log.info("refresh of %d begins", len(self._to_replace))
            else:
                return
        self._to_replace &= set(self.WORKERS)
        if not self._to_replace:
            self.log.info("refresh is over with %d", self.num_workers)
            self._to_replace, self.interval = None, 1000
            return
        count = len(self.WORKERS)
        for _ in range(min(self.batch, self.num_workers + self.batch - count)):
            self.spawn_worker()
        oldest = sorted((pid for pid in self._to_replace), key=lambda pid: self.WORKERS[pid].age)
        for pid in oldest[:max(0, min(count - self.num_workers, self.batch))]:
            self.kill_worker(pid, signal.SIGTERM)
            self._to_replace.discard(pid)

    def handle_ttin(self):
        self.log.info("a TTIN of its own")
        super().handle_ttin()

    def handle_winch(self):
        self.num_workers = 1

class AirflowGunicornApp(Standalone):
    def load_config(self):
        super().load_config()
        for key, value in vars(self.cfg.parser().parse_args(["--threads", "2"])).items():
            if value is not None and key != "args":
                self.cfg.set(key.lower(), value)

    def run(self):
        AirflowArbiter(self).run()

def on_starting(server):
    assert isinstance(server, AirflowArbiter) and server.interval, server

AirflowGunicornApp(application, {"bind": BIND, "workers": 2, "preload_app": True, "on_starting": on_starting}).run()
"""


def test_an_arbiter_that_replaces_workers_itself() -> None:
    """apache/airflow airflow-core/src/airflow/api_fastapi/gunicorn_app.py: the refresh of workers in batches."""
    with program(OPTIONS + AIRFLOW, workers=2) as it:
        before = {int(match[1]) for match in it.log.wait(r"Booting worker with pid: (\d+)", count=2)[:2]}
        it.log.wait("refresh of 2 begins")
        until(lambda: len(it.worker_pids()) == 2 and not before & set(it.worker_pids()), "two others serve")
        it.log.wait("refresh is over with 2")
        facts = it.get("/").json()
        assert facts["pid"] in it.worker_pids()
        assert facts["multithread"]
        it.signal(signal.SIGTTIN)
        it.log.wait("a TTIN of its own")
        until(lambda: len(it.worker_pids()) == 3, "one more")
        it.signal(signal.SIGWINCH)
        until(lambda: len(it.worker_pids()) == 1, "one is left")


@pytest.mark.beyond_reference("gunicorn's arbiter has these methods")
def test_an_arbiter_with_other_methods_is_refused_by_their_names() -> None:
    text = """
from gunicorn.arbiter import Arbiter

class Rolling(Arbiter):
    def manage_workers(self):
        super().manage_workers()

    def reap_workers(self):
        super().reap_workers()

Rolling(Standalone(application, {"bind": BIND})).run()
"""
    it = program(OPTIONS + text)
    it._wait = False
    with it:
        assert it.wait_exit() != 0
        assert (
            "Rolling overrides methods of gunicorn's arbiter that tricorn does not call (reap_workers)" in it.log.text
        )
        assert "max_worker_lifetime" in it.log.text
