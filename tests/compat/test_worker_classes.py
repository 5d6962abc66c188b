"""Worker classes that projects derive from gunicorn's and uvicorn's."""

from __future__ import annotations

import os
import signal

import pytest

from tests.harness import Site
from tests.harness.frames import BINARY, CLOSE, TEXT, Frames, handshake
from tests.harness.needs import needs
from tests.harness.site import replaced

APPLICATION = """
import json

NOTES = []

def application(environ, start_response):
    body = json.dumps([*NOTES, environ.get("SCRIPT_NAME")]).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]

async def asgi(scope, receive, send):
    body = json.dumps([*NOTES, scope.get("root_path")]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
"""

PULP = """
import signal
import shop
from gunicorn.workers.sync import SyncWorker

class PulpWorker(SyncWorker):
    @classmethod
    def setup(cls):
        shop.NOTES.append("setup")

    @classmethod
    def check_config(cls, cfg, log):
        shop.NOTES.append(f"check_config {cfg.workers}")

    def __init__(self, age, ppid, sockets, app, timeout, cfg, log):
        super().__init__(age, ppid, sockets, app, timeout, cfg, log)
        shop.NOTES.append(f"made {self.age} {self.pid}")

    def init_process(self):
        shop.NOTES.append(f"init_process {self.booted}")
        super().init_process()
        self.log.info("init_process is over")

    def load_wsgi(self):
        super().load_wsgi()
        shop.NOTES.append(f"loaded {self.wsgi.__name__}")

    def init_signals(self):
        super().init_signals()
        signal.signal(signal.SIGUSR1, lambda *_: self.log.info("a USR1 of its own"))
        shop.NOTES.append("init_signals")

    def run(self):
        shop.NOTES.append(f"run {self.booted}")
        try:
            super().run()
        finally:
            self.log.info("run is over")

    def notify(self):
        super().notify()
        import threading
        self.log.info("a heartbeat of %s", threading.current_thread().name)

    def handle_exit(self, sig, frame):
        self.log.info("handle_exit %s", sig)
        super().handle_exit(sig, frame)
"""


def site(config: str, app: str = "shop:application", **files: str) -> Site:
    texts = {"shop.py": APPLICATION} | {f"{name}.py": text for name, text in files.items()}
    return Site(config, app=app, files=texts)


def test_a_class_whose_methods_wrap_gunicorns() -> None:
    """pulp/pulpcore pulpcore/app/entrypoint.py."""
    with site("worker_class = 'pulp.PulpWorker'\n", pulp=PULP) as server:
        server.log.wait("Using worker: ")
        assert server.get("/").json() == [
            "setup",
            "check_config 1",
            "made 1 [booting]",
            "init_process False",
            "init_signals",
            "loaded application",
            "run True",
            "",
        ]
        server.log.wait("a heartbeat of MainThread", count=2)
        os.kill(server.worker_pid(), signal.SIGUSR1)
        server.log.wait("a USR1 of its own")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        for text in ("handle_exit 15", "run is over", "init_process is over", "Worker exiting"):
            assert text in server.log.text


@pytest.mark.beyond_reference("gunicorn has them on the class only")
def test_a_class_with_threads() -> None:
    """The class itself stands in the file."""
    config = """
from gunicorn.workers.gthread import ThreadWorker

class Mine(ThreadWorker):
    def load_wsgi(self):
        super().load_wsgi()
        import shop
        shop.NOTES.append(f"{self.alias} {self.cfg.threads}")

    def notify(self):
        import threading
        self.log.info("a heartbeat of %s", threading.current_thread().name)

worker_class = Mine
threads = 3
"""
    with site(config) as server:
        assert server.get("/").json() == ["gthread 3", ""]
        server.log.wait("Using worker: gthread .__config__.Mine.")
        server.log.wait("a heartbeat of MainThread")


GEVENT = """
from gunicorn.workers.ggevent import GeventWorker

class Mine(GeventWorker):
    def patch(self):
        super().patch()
        import socket, shop
        shop.NOTES.append(socket.socket.__module__)
    def notify(self):
        import gevent
        self.log.info("a heartbeat on %s", gevent.getcurrent())
"""


def test_a_class_of_greenlets_patches_besides() -> None:
    needs("gevent")
    with site("worker_class = 'lime.Mine'\n", lime=GEVENT) as server:
        (module, _) = server.get("/").json()
        assert module.startswith("gevent.")
        server.log.wait("a heartbeat on <Greenlet")


SOCKETS = """
from geventwebsocket import WebSocketError

def application(environ, start_response):
    ws = environ.get("wsgi.websocket")
    if ws is None:
        start_response("200 OK", [("Content-Length", "5")])
        return [b"plain"]
    while not ws.closed:
        message = ws.receive()
        if message is None:
            break
        if message == "bye":
            ws.close(4000, "as asked")
            break
        ws.send(message)
        ws.send(b"from " + ws.path.encode(), binary=False)
    for act in (ws.receive, lambda: ws.send("x")):
        try:
            act()
        except WebSocketError as error:
            environ["wsgi.errors"].write(f"over: {error}\\n")
    start_response("200 OK", [])
    return [b"nothing of this is sent"]
"""


LOOKS = """
from importlib.util import find_spec

body = str(find_spec("geventwebsocket") is not None).encode()

def application(environ, start_response):
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.mark.beyond_reference("gevent-websocket is not installed")
def test_the_class_of_gevent_websocket() -> None:
    """geventwebsocket.gunicorn.workers.GeventWebSocketWorker, as tutorials of Flask-SocketIO name it."""
    needs("gevent", "simple_websocket")
    config = "worker_class = 'geventwebsocket.gunicorn.workers.GeventWebSocketWorker'\n"
    with site(config, "chat_room:application", chat_room=SOCKETS) as server:
        server.log.wait(r"Using worker: gevent \(.*GeventWebSocketWorker\)")
        assert server.get("/").body == b"plain"
        with Frames(server.address, "/echo") as socket:
            socket.put(TEXT, "grüß".encode())
            assert [socket.frame().payload for _ in range(2)] == ["grüß".encode(), b"from /echo"]
            socket.put(BINARY, b"\0\xff")
            got = socket.frame()
            assert (got.first, got.payload) == (BINARY, b"\0\xff")
            socket.frame()
            socket.put(TEXT, b"bye")
            got = socket.frame()
            assert (got.first, got.code, got.reason) == (CLOSE, 4000, "as asked")
        with Frames(server.address, "/left") as socket:
            socket.put(CLOSE, b"\x03\xe8")
            assert socket.frame().first == CLOSE
        server.log.wait("over: .*Socket is dead", count=3)
        with server.connect() as wire:
            wire.send(handshake("/bad", drop=("Sec-WebSocket-Key",)))
            assert wire.reply().status == 400


@pytest.mark.beyond_reference("gevent-websocket is not installed")
def test_the_name_of_gevent_websocket_goes_with_its_class() -> None:
    needs("gevent", "simple_websocket")
    config = "worker_class = 'geventwebsocket.gunicorn.workers.GeventWebSocketWorker'\n"
    plain = "worker_class = 'gevent'\n"
    files, expects = {"chat_room.py": LOOKS}, "Exception in worker process"
    with Site(config, app="chat_room:application", files=files, expects=expects) as server:
        assert server.get("/").body == b"True"
        server.write("chat_room.py", "1 / 0\n")
        server.configure(plain)
        server.signal(signal.SIGHUP)
        server.log.wait("Reload failed; the old workers keep serving")
        server.write("chat_room.py", LOOKS)
        replaced(server, lambda: os.kill(server.worker_pid(), signal.SIGKILL))
        assert server.get("/").body == b"True", "a worker of the generation that was kept does without it"
        server.configure(plain + "preload_app = True\n")
        server.hup()
        assert server.get("/").body == b"False", "the arbiter, which has loaded it, still has the name"


PAPERLESS = """
import os
from uvicorn.workers import UvicornWorker

class ConfigurableWorker(UvicornWorker):
    CONFIG_KWARGS = {"root_path": os.getenv("SCRIPT", "/paper"), "loop": "asyncio", "ws": "none"}
"""


def test_a_class_that_configures_uvicorn() -> None:
    """paperless-ngx/paperless-ngx src/paperless/workers.py; authentik and many templates have the same."""
    with site("worker_class = 'paper.ConfigurableWorker'\n", "shop:asgi", paper=PAPERLESS) as server:
        assert server.get("/paper/x").json() == ["/paper"]
        server.hup()
        assert server.get("/paper/x").json() == ["/paper"]


LANGFLOW = """
import signal
from uvicorn.workers import UvicornWorker

class LangflowWorker(UvicornWorker):
    CONFIG_KWARGS = {"loop": "asyncio"}
    _has_exited = False

    def handle_exit(self, sig, frame):
        self._has_exited = True
        self.log.info("exits by %s", sig)
        super().handle_exit(sig, frame)

    def notify(self):
        import asyncio
        self.log.info("a heartbeat in %s", type(asyncio.get_running_loop()).__name__)

    async def _serve(self):
        await super()._serve()
"""


@pytest.mark.beyond_reference("gunicorn calls `_serve`")
def test_a_class_that_handles_signals_of_uvicorns() -> None:
    """langflow-ai/langflow src/backend/base/langflow/server.py."""
    with site("worker_class = 'flow.LangflowWorker'\n", "shop:asgi", flow=LANGFLOW) as server:
        server.log.wait(r"overrides _serve\(\), which tricorn does not call")
        server.log.wait("a heartbeat in .*Loop")
        assert server.get("/").json() == [""]
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert "exits by 15" in server.log.text


ICHNAEA = """
from gunicorn.workers.ggevent import GeventWorker

class Limited(GeventWorker):
    def handle_request(self, *arguments):
        super().handle_request(*arguments)
"""


@pytest.mark.beyond_reference("gunicorn has these methods")
@pytest.mark.parametrize(
    ("extra", "says"),
    [((), "runs unchanged only with gunicorn installed"), (("--worker-class-strict",), "worker_class_strict")],
)
def test_what_has_no_counterpart_is_refused_by_its_name(extra: tuple[str, ...], says: str) -> None:
    """mozilla/ichnaea ichnaea/webapp/worker.py; functions-framework's class for threads has the same."""
    server = Site(
        "worker_class = 'icy.Limited'\n", app="shop:application", files={"icy.py": ICHNAEA}, extra=extra, wait=False
    )
    with server:
        assert server.wait_exit() == 1
        assert "overrides handle_request(), which this server does not call" in server.log.text
        assert "request_timeout" in server.log.text
        assert says in server.log.text


NO_SUPER = """
from gunicorn.workers.sync import SyncWorker

class Mine(SyncWorker):
    def init_process(self):
        self.log.info("boots by itself")
"""


@pytest.mark.beyond_reference("gunicorn lets it")
def test_a_class_that_does_not_serve_is_told_so() -> None:
    server = site("worker_class = 'own.Mine'\n", own=NO_SUPER)
    server._wait = False
    with server:
        assert server.wait_exit() == 3
        server.log.wait(r"Mine: init_process\(\) returned before the worker served")
