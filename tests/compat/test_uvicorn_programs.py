"""Programs that start uvicorn themselves, under `tricorn exec`: with worker processes, or on a loop of their own."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.harness import Server
from tests.harness.server import command

pytestmark = pytest.mark.beyond_reference("gunicorn is no uvicorn")

APPLICATION = """
import os, sys, threading

STATE = []

async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            os.write(1, f"{message['type']} {os.getpid()}\\n".encode())  # whole, where processes write at once
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    body = f"{os.getpid()} {os.getppid()} {len(STATE)}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
"""

START = """
import asyncio, os, sys, threading, time
import uvicorn
from shop import STATE, application

HOST, PORT = os.environ["BIND"].split(":")
"""


class Program(Server):
    """A program of one file, which finds its address in the variable BIND."""

    def __init__(self, text: str, argv: Sequence[str] = ("{python}", "program.py"), workers: int = 1) -> None:
        super().__init__(chdir=None, workers=workers, fresh=True)
        self._env |= {"BIND": self.bind, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        host, port = self.bind.split(":")
        self.argv = [*command(), "exec", *(each.format(python=sys.executable, host=host, port=port) for each in argv)]
        self.directory.joinpath("program.py").write_text(START + text)
        self.directory.joinpath("shop.py").write_text(APPLICATION)


def facts(server: Server) -> tuple[int, int, int]:
    pid, parent, seen = map(int, server.get("/").body.split())
    return pid, parent, seen


FORKING = {
    "run": 'uvicorn.run("shop:application", host=HOST, port=int(PORT), workers=2)',
    "run of an object": "uvicorn.run(application, host=HOST, port=int(PORT))",
    "server": 'uvicorn.Server(uvicorn.Config(application, HOST, int(PORT), log_level="info")).run()',
    "command": "",
    "module": "",
}
ARGV = {
    "command": ("uvicorn", "shop:application", "--host", "{host}", "--port", "{port}", "--workers", "2"),
    "module": ("{python}", "-m", "uvicorn", "shop:application", "--host", "{host}", "--port", "{port}"),
}
WORKERS = {"run": 2, "command": 2}


@pytest.mark.parametrize("case", FORKING)
def test_a_program_gets_worker_processes(case: str) -> None:
    workers = WORKERS.get(case, 1)
    with Program(FORKING[case], ARGV.get(case, ("{python}", "program.py")), workers) as server:
        server.log.wait("Ready: ")
        pid, parent, _ = facts(server)
        assert pid in server.worker_pids()
        assert len(server.worker_pids()) == workers
        assert parent == server.pid
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        server.out.wait("lifespan.shutdown", count=workers)


def embedded(text: str) -> Program:
    server = Program(text)
    server._wait = False
    return server


THREAD = """
class Threaded(uvicorn.Server):
    def install_signal_handlers(self):
        pass

server = Threaded(uvicorn.Config(application, host=HOST, port=int(PORT)))
thread = threading.Thread(target=server.run)
thread.start()
while not server.started:
    time.sleep(0.001)
STATE.append("seen")
print("listening at", server.servers[0].sockets[0].getsockname(), flush=True)
while not os.path.exists("leave"):
    time.sleep(0.01)
server.should_exit = True
thread.join()
print("the thread has ended", flush=True)
"""


def test_a_server_in_a_thread_shares_the_memory_of_the_program() -> None:
    with embedded(THREAD) as server:
        server.out.wait(r"listening at \('127.0.0.1', \d+\)")
        assert facts(server) == (server.pid, os.getpid(), 1)
        (server.directory / "leave").touch()
        server.out.wait("the thread has ended")
        assert server.wait_exit() == 0
        assert server.out.matching(f"lifespan.shutdown {server.pid}")


SERVE = """
async def main():
    STATE.append("seen")
    await uvicorn.Server(uvicorn.Config(application, host=HOST, port=int(PORT))).serve()
    print("served", flush=True)

asyncio.run(main())
"""


def test_serve_runs_on_the_loop_of_the_program() -> None:
    with embedded(SERVE) as server:
        server.log.wait("Ready: ")
        assert facts(server) == (server.pid, os.getpid(), 1)
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == -signal.SIGTERM, "as uvicorn raises it again"
        assert server.out.matching(f"lifespan.shutdown {server.pid}")


SOCKETS = """
config = uvicorn.Config(application, host=HOST, port=int(PORT))
sock = config.bind_socket()

class Ticking(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("started by", len(sockets), "socket", flush=True)

    async def on_tick(self, counter):
        return os.path.exists("leave")

asyncio.run(Ticking(config).serve(sockets=[sock]))
print("the end", flush=True)
"""


def test_what_programs_override_is_called() -> None:
    with embedded(SOCKETS) as server:
        server.out.wait("started by 1 socket")
        assert facts(server)[0] == server.pid
        (server.directory / "leave").touch()
        server.out.wait("the end")
        assert server.wait_exit() == 0


def test_a_server_that_cannot_start_says_so() -> None:
    text = """
async def failing(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})

asyncio.run(uvicorn.Server(uvicorn.Config(failing, host=HOST, port=int(PORT))).serve())
"""
    with embedded(text) as server:
        assert server.wait_exit() == 3
        assert server.log.matching("no database")


def test_modules_of_the_installed_uvicorn_are_there(tmp_path: Path) -> None:
    """Applications wrap themselves in its middlewares."""
    package = tmp_path / "uvicorn" / "middleware"
    package.mkdir(parents=True)
    for name in ("__init__.py", "middleware/__init__.py", "main.py"):
        (tmp_path / "uvicorn" / name).write_text("")
    (package / "proxy_headers.py").write_text(
        "from uvicorn.config import LOG_LEVELS\nclass ProxyHeadersMiddleware: ...\n"
    )
    text = """
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
print(ProxyHeadersMiddleware.__module__, uvicorn.run.__module__)
"""
    server = embedded(text)
    server._env["PYTHONPATH"] = str(tmp_path)
    with server:
        assert server.wait_exit() == 0
        assert server.out.matching("uvicorn.middleware.proxy_headers uvicorn.main")


def test_a_name_that_is_not_served_says_so() -> None:
    with embedded("from uvicorn.server import ServerState") as server:
        assert server.wait_exit() == 1
        assert server.log.matching("tricorn does not serve uvicorn.server.ServerState")
