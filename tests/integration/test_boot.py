"""Coming up, and failing to: messages, exit codes, and what the options make of the process."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest

from tests.conftest import Pool
from tests.harness import APPS, KINDS, REFERENCE, Server, Site
from tests.harness.server import free_port, free_ports, run

NAME = "gunicorn" if REFERENCE else "tricorn"
STAMP = r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}\] \[\d+\] "


def address() -> list[str]:
    return ["-b", f"127.0.0.1:{free_port()}"]


@KINDS
def test_boot_lines(pool: Pool, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, workers=2)
    lines = server.log.lines[:6]
    assert re.match(STAMP + rf"\[INFO\] Starting {NAME} \d+\.\d+", lines[0]), lines
    assert re.match(STAMP + rf"\[INFO\] Listening at: http://127\.0\.0\.1:{server.port} \({server.pid}\)$", lines[1]), (
        lines
    )
    assert re.match(STAMP + rf"\[INFO\] Using worker: {worker_class}$", lines[2]), lines
    booted = server.log.matching(STAMP + r"\[INFO\] Booting worker with pid: (\d+)$")
    assert sorted(int(match[1]) for match in booted) == server.worker_pids()


@pytest.mark.beyond_reference("the log does not tell there when workers serve")
def test_one_line_says_that_the_server_is_ready() -> None:
    with Site("workers = 2\nthreads = 2\nworker_class = 'gthread'\n", workers=2) as server:
        server.log.wait(
            rf"\[INFO\] Ready: 2 gthread workers serve gallery:application at http://127.0.0.1:{server.port} "
            rf"\(\d+\.\d s, configured by {server.conf}\)$"
        )
        server.hup()
        server.log.wait("Ready: 2 gthread workers", count=2)


MODULES = """
import sys

async def application(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": " ".join(sys.modules).encode()})
"""


@pytest.mark.beyond_reference("its modules are its own affair")
def test_an_asgi_worker_imports_what_it_needs() -> None:
    with Site(app="mine:application", files={"mine.py": MODULES}) as server:
        modules = set(server.get("/").body.decode().split())
    assert {"asyncio", "tricorn.gateway.lifespan"} <= modules
    assert not {"importlib.metadata", "email", "csv", "zipfile", "urllib.parse", "http.client"} & modules


@pytest.mark.beyond_reference("its modules are its own affair")
def test_a_gevent_worker_imports_what_it_needs() -> None:
    app = """
import sys

def application(environ, start_response):
    start_response("200 OK", [])
    return [" ".join(sys.modules).encode()]
"""
    with Site("worker_class = 'gevent'\n", app="mine:application", files={"mine.py": app}) as server:
        modules = set(server.get("/").body.decode().split())
    assert {"gevent.ssl", "tricorn_green.patching"} <= modules
    assert not {"importlib.metadata", "csv", "zipfile", "tempfile", "shutil"} & modules


def test_several_addresses() -> None:
    ports = free_ports(2)
    with Server(bind=f"127.0.0.1:{ports[0]}", extra=["-b", f"127.0.0.1:{ports[1]}"]) as server:
        assert server.get("/hello").status == 200
        server.port, server.address = ports[1], ("127.0.0.1", ports[1])
        assert server.get("/hello").status == 200
        assert server.log.matching(rf"Listening at: http://127\.0\.0\.1:{ports[0]},http://127\.0\.0\.1:{ports[1]} ")


@KINDS
def test_an_application_that_does_not_load_is_exit_3(worker_class: str) -> None:
    """gunicorn's distinction: an error inside the module is a worker that failed to boot."""
    done = run(*address(), "-k", worker_class, "broken_import:application")
    assert done.returncode == 3, done.stderr
    assert "import marker: this module does not load" in done.stderr
    assert "Traceback" in done.stderr
    assert "Worker failed to boot" in done.stderr


@pytest.mark.beyond_reference("each worker there tells the whole way to the error")
@KINDS
def test_why_no_worker_boots_is_told_once_and_from_the_application_on(worker_class: str) -> None:
    done = run(*address(), "-k", worker_class, "-w", "3", "broken_import:application")
    assert done.returncode == 3
    assert done.stderr.count("Traceback") == 1
    frames = re.findall('  File "(.*?)"', done.stderr)
    assert frames
    assert all(frame.startswith(str(APPS)) for frame in frames), frames


@pytest.mark.beyond_reference("a traceback of the server there")
def test_a_module_that_is_not_there_is_one_sentence() -> None:
    done = run(*address(), "-w", "3", "nowhere.wsgi:application")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    (line,) = re.findall("Could not import 'nowhere.wsgi:application'.*", done.stderr)
    assert len(re.findall(r"^(?:\[|Error:)", done.stderr, re.MULTILINE)) == 2, "tried before a worker is forked"
    assert f"no module named 'nowhere' in {APPS} or elsewhere on sys.path." in line


@pytest.mark.beyond_reference("it has no commands")
@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("dcotor", " Did you mean the command `tricorn doctor`?"),
        ("version", " For the version: `tricorn --version`."),
        ("help", " For the help: `tricorn --help`."),
        ("nowhere", ""),
    ],
)
def test_a_slip_in_a_command_is_named(word: str, meant: str) -> None:
    done = run(*address(), word)
    assert done.returncode == 3
    (line,) = re.findall(f"Could not import '{word}'.*", done.stderr)
    assert line.endswith(f"Check the name, chdir and pythonpath.{meant}")


@pytest.mark.parametrize(
    ("app", "says"),
    [
        ("gallery:nothing", "Failed to find attribute 'nothing' in 'gallery'"),
        ("settings:not_callable", "callable"),
        ("gallery:application:more", "Failed to parse"),
        ("settings:create(", "Failed to parse"),
    ],
)
def test_an_application_that_is_not_there_is_exit_4(app: str, says: str) -> None:
    done = run(*address(), app)
    assert done.returncode == 4, done.stderr
    assert says in done.stderr
    assert "App failed to load" in done.stderr


@pytest.mark.beyond_reference("a module that does not exist is a worker that failed to boot there")
def test_a_module_that_does_not_exist() -> None:
    done = run(*address(), "no_such_module:application")
    assert done.returncode in (3, 4)
    assert "no_such_module" in done.stderr


@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_failed_boot_leaves_nobody_behind(workers: str) -> None:
    if REFERENCE and workers == "3":
        pytest.skip("the reference server gives up with a traceback")
    done = run(*address(), "-w", workers, "broken_import:application")
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("Shutting down: Master") == 1


@pytest.mark.parametrize(
    "args",
    [["--no-such-option"], ["-w", "many"], ["--timeout", "soon"], ["-w"]],
    ids=["unknown", "not_a_number", "not_seconds", "no_value"],
)
def test_bad_arguments_are_exit_2_with_a_message(args: list[str]) -> None:
    done = run(*args, "gallery:application")
    # The reference server's argparse lets some values through, and its settings refuse them with 1.
    lenient = REFERENCE and args not in (["--no-such-option"], ["-w"])
    assert done.returncode in ((1, 2) if lenient else (2,)), done.stderr
    assert args[-1] in done.stderr or "-w" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_application_is_an_error() -> None:
    done = run(*address())
    assert done.returncode == 1, done.stderr
    assert "No application module specified" in done.stderr


@pytest.mark.timeout(60)
def test_an_address_in_use_is_exit_1() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", free_port()))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("-b", f"127.0.0.1:{port}", "gallery:application", timeout=30)
    assert done.returncode == 1
    assert str(port) in done.stderr
    assert "in use" in done.stderr


def test_help_and_version() -> None:
    done = run("--help")
    assert done.returncode == 0
    for flag in ("--bind", "--workers", "--worker-class", "--threads", "--graceful-timeout", "--chdir"):
        assert flag in done.stdout
    done = run("--version")
    assert done.returncode == 0
    assert NAME in done.stdout


def test_env_chdir_and_pythonpath(tmp_path: Path) -> None:
    extra = ["--env", "TRICORN_A=one", "-e", "TRICORN_B=two=2", "--pythonpath", f"{APPS},{tmp_path}"]
    with Server("settings:application", chdir=tmp_path, extra=extra) as server:
        facts = server.get("/").json()
    assert facts["env"] == {"TRICORN_A": "one", "TRICORN_B": "two=2"}
    assert os.path.samefile(facts["cwd"], tmp_path)
    assert str(APPS) in facts["path"]
    assert facts["path"].count(str(tmp_path)) >= 1


def test_chdir_is_where_modules_are_found() -> None:
    with Server("settings:application") as server:
        facts = server.get("/").json()
    assert facts["cwd"] == str(APPS)


def test_boot_of_an_application_factory() -> None:
    with Server('settings:create("hi", loud=True)') as server:
        assert server.get("/").body == b"HI"


def test_the_default_name_of_an_application() -> None:
    with Server("gallery") as server:
        assert server.get("/hello").status == 200


def test_the_command_line_from_the_environment() -> None:
    variable = "GUNICORN_CMD_ARGS"
    with Server(env={variable: "--env TRICORN_A=from-variable"}, app="settings:application") as server:
        assert server.get("/").json()["env"]["TRICORN_A"] == "from-variable"


def test_a_config_file(tmp_path: Path) -> None:
    config = tmp_path / "conf.py"
    config.write_text('raw_env = ["TRICORN_A=from-file"]\nworkers = 2\n')
    with Server("settings:application", extra=["-c", str(config)]) as server:
        assert server.get("/").json()["env"]["TRICORN_A"] == "from-file"


def test_boot_writes_the_pidfile(tmp_path: Path) -> None:
    pidfile = tmp_path / "server.pid"
    with Server(extra=["-p", str(pidfile)]) as server:
        assert int(pidfile.read_text()) == server.pid
    assert not pidfile.exists()


def test_boot_with_preload_app() -> None:
    with Server(worker_class="gthread", workers=2, preload=True) as server:
        assert {int(server.get("/pid").body) for _ in range(20)} <= set(server.worker_pids())


def test_a_unix_socket_is_removed_at_the_end() -> None:
    with Server(transport="unix") as server:
        path = Path(str(server.address))
        assert path.is_socket()
        assert server.get("/hello").status == 200
        server.process.terminate()
        server.wait_exit()
        assert not path.exists()


def test_a_unix_socket_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with Server(bind=f"unix:{path}", transport="unix", wait=False) as server:
        server.address = str(path)
        server.wait_ready()
        assert server.get("/hello").status == 200
