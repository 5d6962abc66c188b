"""What tricorn has and gunicorn has not: an effect for each setting."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tricorn.control.client import Control

from tests.compat.effects.common import fact_site, facts, files_below, raw, status
from tests.compat.effects.requests import announced
from tests.harness import Site, Wire, until
from tests.harness.deadline import AT_ONCE
from tests.harness.server import free_port
from tests.harness.wire import chunked, request

TELLS_ROUTES = """
def application(environ, start_response):
    environ["tricorn.route"] = environ["PATH_INFO"]
    start_response("204 No Content", [])
    return []
"""


def ask(port: int, path: str) -> int:
    with Wire(("127.0.0.1", port)) as wire:
        return wire.get(path).status


def sees_admin_bind(directory: Path) -> None:
    port = free_port()
    with Site(f"admin_bind = '127.0.0.1:{port}'\n") as server:
        assert server.get("/hello").status == 200
        until(lambda: ask(port, "/readyz") == 200, "readiness")
        assert ask(port, "/healthz") == 200
        assert ask(port, "/hello") == 404


def sees_health_path(directory: Path) -> None:
    port = free_port()
    with Site(f"admin_bind = '127.0.0.1:{port}'\nhealth_path = '/alive'\n"):
        until(lambda: ask(port, "/alive") == 200, "health")
        assert ask(port, "/healthz") == 404


def sees_ready_path(directory: Path) -> None:
    port = free_port()
    with Site(f"admin_bind = '127.0.0.1:{port}'\nready_path = '/prepared'\n"):
        until(lambda: ask(port, "/prepared") == 200, "readiness")
        assert ask(port, "/readyz") == 404


def sees_metrics_path(directory: Path) -> None:
    port = free_port()
    with Site(f"admin_bind = '127.0.0.1:{port}'\nmetrics_path = '/numbers'\n"):
        until(lambda: ask(port, "/numbers") == 200, "metrics")
        assert ask(port, "/metrics") == 404


def sees_admin_page(directory: Path) -> None:
    port = free_port()
    with Site(f"admin_bind = '127.0.0.1:{port}'\nadmin_page = '/look'\n"):
        until(lambda: ask(port, "/look") == 200, "the page")
        assert (ask(port, "/"), ask(port, "/look/live.json")) == (404, 200)


def sees_admin_status(directory: Path) -> None:
    port = free_port()
    with Site(f"admin_bind = '127.0.0.1:{port}'\nadmin_status = True\n"):
        until(lambda: ask(port, "/status") == 200, "the status")


def sees_load_report(directory: Path) -> None:
    with Site("load_report = 'orca'\n") as server:
        until(lambda: server.get("/").get("endpoint-load-metrics"), "the field")


def sees_metrics_app(directory: Path) -> None:
    port = free_port()
    environ = {"PROMETHEUS_MULTIPROC_DIR": str(directory / "metrics")}
    with Site(f"admin_bind = '127.0.0.1:{port}'\nmetrics_app = 'off'\n", env=environ):
        until(lambda: ask(port, "/metrics") == 200, "metrics")
        assert not (directory / "metrics").exists()


def sees_route_metrics(directory: Path) -> None:
    for named, routes in ((1, {"/hello": 1, "other": 1}), (0, {})):
        socket = directory / f"ctl{named}"
        config = f"control_socket = {str(socket)!r}\nroute_metrics = {named}\n"
        with Site(config, files={"gives_names.py": TELLS_ROUTES}, app="gives_names:application") as server:
            assert [server.get(path).status for path in ("/hello", "/bye")] == [204, 204]

            def counted(socket: Path = socket) -> dict[str, int]:
                with Control.connect(socket) as control:
                    return {row["route"]: row["requests"] for row in control.ask("routes")["routes"]}

            until(lambda routes=routes, counted=counted: counted() == routes, "the routes")


def sees_admin_allow(directory: Path) -> None:
    port = free_port()
    with Site(f"admin_bind = '127.0.0.1:{port}'\nadmin_allow = '192.0.2.0/24'\n"):
        until(lambda: ask(port, "/healthz") == 403, "an answer")


def sees_trusted_proxy_headers(directory: Path) -> None:
    fields = [("X-Forwarded-For", "192.0.2.1, 192.0.2.2"), ("Forwarded", "for=192.0.2.3")]
    with fact_site("trusted_proxy_headers = ['X-Forwarded-For']\n") as server:
        environ = facts(server, *fields)["environ"]
        assert (environ["REMOTE_ADDR"], "HTTP_FORWARDED" in environ) == ("192.0.2.2", False)


def sees_proxy_protocol_required(directory: Path) -> None:
    with fact_site("proxy_protocol = 'v1'\nproxy_protocol_required = True\n") as server:
        assert server.get("/").status == 400


def sees_trusted_proxy_count(directory: Path) -> None:
    with fact_site("trusted_proxy_headers = 'x-forwarded-for'\ntrusted_proxy_count = 2\n") as server:
        environ = facts(server, ("X-Forwarded-For", "192.0.2.1, 192.0.2.2"))["environ"]
        assert environ["REMOTE_ADDR"] == "192.0.2.1"


def sees_clear_untrusted_proxy_headers(directory: Path) -> None:
    settings = "trusted_proxy_headers = 'x-forwarded-for'\nclear_untrusted_proxy_headers = False\n"
    with fact_site(settings) as server:
        assert facts(server, ("Forwarded", "for=192.0.2.3"))["environ"]["HTTP_FORWARDED"] == "for=192.0.2.3"


def sees_request_timeout(directory: Path) -> None:
    with Site("request_timeout = 1\n", app="stuck:application") as server:
        assert server.get("/naps").status == 504


def sees_boot_timeout(directory: Path) -> None:
    files = {"slow.py": "import time\ntime.sleep(60)\n"}
    with Site("boot_timeout = 1\n", app="slow:application", files=files, wait=False) as server:
        assert server.wait_exit() == 3


def sees_max_worker_memory(directory: Path) -> None:
    with Site(f"max_worker_memory = {150 << 20}\n", app="stuck:application") as server:
        worker = int(server.get("/pid").body)
        server.get(f"/grow?bytes={200 << 20}")
        until(lambda: server.worker_pids() and worker not in server.worker_pids(), "another worker")


def sees_max_worker_lifetime(directory: Path) -> None:
    with Site("max_worker_lifetime = 1\n") as server:
        worker = int(server.get("/pid").body)
        until(lambda: server.worker_pids() and worker not in server.worker_pids(), "another worker")


def sees_max_worker_lifetime_jitter(directory: Path) -> None:
    """Workers of the same age do not all go in the same moment."""
    with Site("workers = 4\nmax_worker_lifetime = 1\nmax_worker_lifetime_jitter = 3\n", workers=4) as server:
        first = set(server.worker_pids())
        left: dict[int, float] = {}

        def all_gone() -> bool:
            for pid in first - set(server.worker_pids()) - set(left):
                left[pid] = time.monotonic()
            return len(left) == 4

        until(all_gone, "the first generation is gone")
        assert max(left.values()) - min(left.values()) > 0.05


def sees_drain_delay(directory: Path) -> None:
    with Site("drain_delay = 1\n") as server:
        server.get("/hello")
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        server.log.wait("Handling signal: term")
        assert server.get("/hello").status == 200, "it serves on"
        assert server.wait_exit() == 0
        assert time.monotonic() - began >= 0.9


def sees_drain_quiet(directory: Path) -> None:
    with Site("drain_delay = 3600\ndrain_quiet = 1\n") as server:
        server.get("/hello")
        server.signal(signal.SIGTERM)
        server.log.wait("Draining for 3600 seconds")
        for _ in range(3):
            time.sleep(0.5)  # a client that comes again and again
            assert server.get("/hello").status == 200
        server.log.wait(r"No requests for 1 seconds \(drain_quiet\); draining ends early.")
        assert server.wait_exit() == 0


def sees_connection_max_requests(directory: Path) -> None:
    with Site("connection_max_requests = 3\nkeepalive = 60\n") as server, server.connect() as wire:
        assert [wire.get("/hello").closes for _ in range(3)] == [False, False, True]
        assert wire.ended() == b""
        assert server.get("/hello").status == 200


def sees_connection_max_age(directory: Path) -> None:
    config = "connection_max_age = 1\nkeepalive = 60\n"
    with Site(config) as server, server.connect() as idle, server.connect() as busy:
        began = time.monotonic()
        assert not idle.get("/hello").closes
        while not busy.get("/hello").closes:
            time.sleep(0.02)
        assert time.monotonic() - began > 0.8
        assert busy.ended() == b""
        assert idle.ended() == b"", "long before it has been idle for a minute"


def ends(config: str, *parts: bytes, within: float) -> bytes:
    """What a client hears that sends this and then nothing, until it is cut off."""
    with Site(f"worker_class = 'gthread'\n{config}") as server, server.connect(timeout=within) as wire:
        wire.send(*parts)
        return wire.ended()


def sees_header_timeout(directory: Path) -> None:
    ends("header_timeout = 1\n", b"GET / HT", within=AT_ONCE)


def sees_body_timeout(directory: Path) -> None:
    ends("body_timeout = 1\n", b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc", within=AT_ONCE)


def sees_body_min_rate(directory: Path) -> None:
    """A client that keeps sending is cut off all the same, for it sends too slowly."""
    config = "worker_class = 'gthread'\nbody_timeout = 1\nbody_min_rate = 100000\n"
    with Site(config) as server, server.connect() as wire:
        wire.send(b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")

        def cut_off() -> bool:
            try:
                wire.send(b"x")
            except OSError:
                return True
            return not wire.still_open(0.05)

        until(cut_off, "it is cut off")


def sees_write_timeout(directory: Path) -> None:
    """A client that does not read the answer is given up, and its thread is free again."""
    with (
        Site("worker_class = 'gthread'\nthreads = 2\nwrite_timeout = 1\naccesslog = '-'\n") as server,
        server.connect(receive_buffer=4096) as wire,
    ):
        wire.send(request("GET", "/stream?count=400&size=100000&marked"))
        server.out.wait("marked")
        wire.reset()


def sees_body_buffer_size(directory: Path) -> None:
    """Beyond it a body is kept in a file."""
    gate = directory / "gate"
    with (
        Site(f"worker_class = 'gthread'\nbody_buffer_size = 1000\ntmp_upload_dir = '{directory}'\n") as server,
        server.connect() as wire,
    ):
        wire.send(request("POST", f"/gate?open={gate}", body=b"x" * 300_000))
        until(lambda: list(directory.glob("gate.in.*")), "the request is in the application")
        assert files_below(server, directory)
        gate.touch()
        assert wire.reply().text.endswith(" 300000")


def sees_body_buffer_total(directory: Path) -> None:
    """Bodies that are small, but not together: they are kept in files too."""
    gate = directory / "gate"
    config = f"worker_class = 'gthread'\nthreads = 2\nbody_buffer_total = 1000\ntmp_upload_dir = '{directory}'\n"
    with Site(config) as server, server.connect() as wire:
        wire.send(request("POST", f"/gate?open={gate}", body=b"x" * 300_000))
        until(lambda: list(directory.glob("gate.in.*")), "the request is in the application")
        assert files_below(server, directory)
        gate.touch()
        assert wire.reply().status == 200


def sees_body_disk_total(directory: Path) -> None:
    """A body that alone is larger is refused before it is sent; 0 is no limit."""
    head = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\n\r\n"
    small = "worker_class = 'gthread'\nbody_buffer_size = 1000\nbody_disk_total = "
    with Site(f"{small}2000\n") as server:
        assert raw(server, head).startswith(b"HTTP/1.1 413 ")
        assert server.post("/body", b"x" * 1900).status == 200
    with Site(f"{small}0\n") as server:
        assert server.post("/body", b"x" * 3000).status == 200


def sees_disk_budget(directory: Path) -> None:
    """Four fifths of it are for request bodies."""
    head = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 33000\r\n\r\n"
    with Site("worker_class = 'gthread'\nbody_buffer_size = 1000\ndisk_budget = '40K'\n") as server:
        assert raw(server, head).startswith(b"HTTP/1.1 413 ")
        assert server.post("/body", b"x" * 32_000).status == 200


def sees_trusted_proxies(directory: Path) -> None:
    """Whom it names is believed in fields and in headers of the PROXY protocol."""
    for networks, believes in (("10.0.0.0/8", False), ("127.0.0.0/8", True)):
        with fact_site(f"trusted_proxies = '{networks}'\nproxy_protocol = True\n") as server:
            assert (announced(server)[0] == 200) is believes
            scheme = facts(server, ("X-Forwarded-Proto", "https"))["environ"]["wsgi.url_scheme"]
            assert scheme == ("https" if believes else "http")


def sees_leniency(directory: Path) -> None:
    odd = request("gEt", "/hello")
    with Site("leniency = ['permit_unconventional_http_method']\n") as server:
        assert status(server, odd) == 200


def sees_request_buffering(directory: Path) -> None:
    """The application answers before the body has come."""
    with Site("worker_class = 'sync'\nrequest_buffering = False\n") as server, server.connect() as wire:
        wire.send(request("POST", "/upload?how=refuse", [("Content-Length", "1000000")]))
        assert wire.reply().status == 401


PIECES, PIECE = 800, 65536  # several times what the kernel takes


def long_report(server: Site, wire: Wire) -> None:
    """Asks for a long response, of which nothing is read."""
    wire.send(request("GET", f"/report?tag=t&count={PIECES}&size={PIECE}"))


def produced(server: Site) -> int:
    count: int = server.get("/report?seen=t").json()["produced"]
    return count


def waits(server: Site) -> bool:
    """The application has begun, is not done, and does not go on."""
    before = produced(server)
    time.sleep(0.2)
    return 0 < before == produced(server) < PIECES


def on_disk(server: Site, directory: Path) -> int:
    """Bytes of the worker's files there."""
    total = 0
    for fd in Path(f"/proc/{server.worker_pid()}/fd").iterdir():
        with contextlib.suppress(OSError):
            total += fd.stat().st_size if str(fd.readlink()).startswith(str(directory)) else 0
    return total


def sees_response_buffering(directory: Path) -> None:
    """Off, the application waits for its client."""
    config = "worker_class = 'gthread'\nthreads = 2\n"
    with Site(config) as server, server.connect() as wire:
        long_report(server, wire)
        until(lambda: produced(server) == PIECES, "all is produced")
    with Site(config + "response_buffering = False\n") as server, server.connect() as wire:
        long_report(server, wire)
        until(lambda: waits(server), "it waits")


def sees_response_buffer_size(directory: Path) -> None:
    """All of the response fits in memory."""
    config = "worker_class = 'gthread'\nthreads = 2\nresponse_buffering = 'off'\nresponse_buffer_size = '64M'\n"
    with Site(config) as server, server.connect() as wire:
        long_report(server, wire)
        until(lambda: produced(server) == PIECES, "all is produced")


def sees_response_buffer_total(directory: Path) -> None:
    """A response that is one piece goes to disk, too."""
    with (
        Site(f"response_buffer_total = 1000\ntmp_upload_dir = '{directory}'\n") as server,
        server.connect() as wire,
    ):
        wire.send(request("GET", f"/blob?size={PIECES * PIECE}"))
        until(lambda: on_disk(server, directory), "the file")
        assert len(wire.reply().body) == PIECES * PIECE


def _waits_behind_a_file(config: str, directory: Path) -> None:
    config = f"worker_class = 'gthread'\nthreads = 2\ntmp_upload_dir = '{directory}'\n{config}"
    with Site(config) as server, server.connect() as wire:
        long_report(server, wire)
        until(lambda: waits(server), "it waits")
        assert 0 < on_disk(server, directory) <= 4 << 20


def sees_response_disk_size(directory: Path) -> None:
    _waits_behind_a_file("response_disk_size = '4M'\n", directory)


def sees_response_disk_total(directory: Path) -> None:
    _waits_behind_a_file("response_disk_total = '4M'\n", directory)


def _refuses_heads(config: str) -> None:
    """Two heads that each may come, but not both."""
    head = b"GET / HTTP/1.1\r\nHost: h\r\n" + (b"X-Long: " + b"y" * 8000 + b"\r\n") * 90
    with Site(config) as server, contextlib.ExitStack() as stack:
        wires = [stack.enter_context(server.connect()) for _ in range(2)]
        for wire in wires:
            with contextlib.suppress(OSError):
                wire.send(head)
        server.log.wait("head_buffer_total")
        until(lambda: any(wire.still_open(0.01) and wire.unread for wire in wires), "one is answered")
        assert any(wire.unread.startswith(b"HTTP/1.1 503 ") for wire in wires)


def sees_head_buffer_total(directory: Path) -> None:
    _refuses_heads("head_buffer_total = '1M'\n")


def sees_memory_budget(directory: Path) -> None:
    """A seventh of it is for heads."""
    _refuses_heads("memory_budget = '7M'\n")


def sees_max_connections(directory: Path) -> None:
    with (
        Site("worker_class = 'gthread'\nkeepalive = 30\nmax_connections = 2\n") as server,
        contextlib.ExitStack() as stack,
    ):
        wires = [stack.enter_context(server.connect()) for _ in range(2)]
        for wire in wires:
            assert wire.get("/hello").status == 200
        third = stack.enter_context(server.connect())
        third.send(request("GET", "/hello"))
        # Either it waits for a place, or an idle one is closed to make room: never three at once.
        held = sum(wire.still_open(0.2) for wire in [*wires, third])
        assert not (third.unread and held == 3)


def sees_limit_request_body(directory: Path) -> None:
    with Site("limit_request_body = 1000\n") as server:
        assert server.post("/body", b"x" * 900).status == 200
        answer = raw(server, b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 2000\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 413 "), "before the body is sent"
        head = request("POST", "/body", [("Transfer-Encoding", "chunked")])
        assert raw(server, head + chunked([b"x" * 600] * 3)).startswith(b"HTTP/1.1 413 ")


def sees_log_streams(directory: Path) -> None:
    with Site("log_streams = 'split'\n", wait=False) as server:
        server.out.wait("Booting worker with pid")
        until(server._accepts, "it accepts")
        server.get("/crash?when=call")
        server.log.wait("crash marker")
        assert "[INFO]" not in server.log.text
        assert "[ERROR]" not in server.out.text


def sees_log_format(directory: Path) -> None:
    with Site("log_format = 'json'\naccesslog = '-'\n", wait=False) as server:
        server.log.wait("Booting worker with pid")
        until(server._accepts, "it accepts")
        target = "/hello?a=%22%5C&marked"
        server.get(target, ("User-Agent", 'quote " and \\ backslash'))
        (line,) = server.out.wait(".*marked.*")
        assert 'quote " and \\ backslash' in json.loads(line[0]).values()
        entries = [json.loads(line) for line in server.log.lines]
        assert any("Booting worker with pid" in str(entry) for entry in entries)


def sees_request_id(directory: Path) -> None:
    with fact_site("request_id = True\n") as server:
        given = facts(server, ("X-Request-ID", "from-outside-1"))
        assert given["environ"]["tricorn.request_id"] == "from-outside-1"
        first, second = (facts(server)["environ"]["tricorn.request_id"] for _ in range(2))
        assert first
        assert first != second
        assert server.get("/").get("X-Request-ID")


def sees_green_drivers(directory: Path) -> None:
    files = {"pycurl.py": "", "loud.py": "import pycurl\nfrom gallery import application\n"}
    config = "worker_class = 'gevent'\nworkers = 2\n"
    line = r"pycurl .* blocks the whole worker"
    with Site(config, app="loud:application", files=files, workers=2) as server:
        assert len(server.log.wait(line)) == 1
    with Site(config, app="loud:application", files=files, workers=2, extra=("--no-green-drivers",)) as server:
        assert server.get("/hello").status == 200
        assert server.log.matching(line) == []


def sees_factory(directory: Path) -> None:
    files = {"mine.py": "from gallery import application\ndef make(): return application\n"}
    with Site("factory = True\n", app="mine:make", files=files) as server:
        assert server.get("/hello").status == 200


def sees_env_file(directory: Path) -> None:
    path = directory / ".env"
    path.write_text("TRICORN_A=from the file\nTRICORN_B=from the file # a comment\nHOME=elsewhere\n")
    with fact_site(f"env_file = {str(path)!r}\nraw_env = ['TRICORN_B=from raw_env']\n") as server:
        env = facts(server)["env"]
        assert (env["TRICORN_A"], env["TRICORN_B"]) == ("from the file", "from raw_env")
        assert env["HOME"] != "elsewhere", "it was there"
        path.write_text("TRICORN_A=after a reload\n")
        server.hup()
        assert facts(server)["env"]["TRICORN_A"] == "after a reload"


def sees_unavailable(directory: Path) -> None:
    with Site("unavailable = 'warn'\nprotocol = 'uwsgi'\nuwsgi_allow_ips = '*'\n") as server:
        assert server.get("/hello").status == 200
        assert len(server.log.matching(r"\[WARNING\] .*setting protocol .* was ignored")) == 1
    with Site("protocol = 'uwsgi'\n", wait=False) as server:
        assert server.wait_exit() == 1
        assert "setting protocol is not available" in server.log.text


def head(server: Site) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in server.get("/hello").fields:
        found.setdefault(name.lower(), []).append(value)
    return found


def sees_server_header(directory: Path) -> None:
    for value, expected in [("'shop/2'", ["shop/2"]), ("False", None), ("True", ["tricorn"])]:
        with Site(f"server_header = {value}\n") as server:
            assert head(server).get("server") == expected


def sees_date_header(directory: Path) -> None:
    with Site("date_header = False\n") as server:
        assert "date" not in head(server)


def sees_headers(directory: Path) -> None:
    with Site("headers = ['X-Frame-Options: DENY', ('X-A', '1'), 'X-A: 2', 'Server: shop']\n") as server:
        fields = head(server)
        assert (fields["x-frame-options"], fields["x-a"], fields["server"]) == (["DENY"], ["1", "2"], ["shop"])
    with Site("headers = ['X-A: 1\\r\\nX-B: 2']\n", wait=False) as server:
        assert server.wait_exit() == 1


def reloads(directory: Path, settings: str, path: Path, expected: bool) -> None:
    """Whether a change of the file starts another worker."""
    with Site(f"reload = True\nreload_engine = 'poll'\nchdir = {str(directory)!r}\n{settings}") as server:
        worker = server.worker_pid()
        server.get("/hello")
        if expected:
            until(lambda: touched(path) and worker not in server.worker_pids(), "a reload", every=1.5)
            return
        other = directory / "seen.html"
        until(lambda: touched(path) and touched(other) and worker not in server.worker_pids(), "one", every=1.5)
        assert not server.log.matching(re.escape(str(path))), "it was the other file"


def touched(path: Path) -> bool:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"# {time.monotonic_ns()}\n")
    return True


def sees_reload_dirs(directory: Path) -> None:
    touched(directory / "lib" / "unused.py")
    reloads(directory, f"reload_dirs = [{str(directory / 'lib')!r}]\n", directory / "lib" / "unused.py", True)


def sees_reload_includes(directory: Path) -> None:
    touched(directory / "templates" / "page.html")
    reloads(directory, "reload_includes = ['*.html']\n", directory / "templates" / "page.html", True)


def sees_reload_excludes(directory: Path) -> None:
    touched(directory / "build" / "page.html")
    touched(directory / "seen.html")
    settings = "reload_includes = ['*.html']\nreload_excludes = ['build']\n"
    reloads(directory, settings, directory / "build" / "page.html", False)


def sees_control_socket(directory: Path) -> None:
    path = directory / "control"
    with Site(f"control_socket = {str(path)!r}\n") as server, Control.connect(path, 20) as control:
        assert control.ask("status")["pid"] == server.pid
    assert not path.exists()


def sees_control_socket_mode(directory: Path) -> None:
    path = directory / "control"
    with Site(f"control_socket = {str(path)!r}\ncontrol_socket_mode = 0o640\n"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def sees_control_read_only(_: Path) -> None:
    """Asked by another user, whom the mode lets in."""
    if os.geteuid():
        pytest.skip("only root can be another user")
    path = f"/tmp/tricorn-read-only-{os.getpid()}"
    program = f"""
import json, os, socket
os.setgid(65534)
os.setuid(65534)
client = socket.socket(socket.AF_UNIX)
client.settimeout(20)
client.connect({path!r})
lines = client.makefile("rw")
for word in ("status", "reload"):
    print(json.dumps({{"do": word}}), file=lines, flush=True)
    print(json.loads(lines.readline()).get("kind", "done"))
"""
    with Site(f"control_socket = {path!r}\ncontrol_socket_mode = 0o666\ncontrol_read_only = True\n"):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.split() == ["done", "denied"]


STREAM = """
def application(environ, start_response):
    import time
    start_response("200 OK", [("Content-Type", "text/event-stream")])
    while True:
        yield b"data: x\\n\\n"
        time.sleep(0.05)
"""

SILENT = """
async def application(scope, receive, send):
    assert scope["type"] == "http"
    fields = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": b"data: x\\n\\n", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass
"""


def streams(server: Site, count: int, stack: contextlib.ExitStack) -> list[Wire]:
    wires = [stack.enter_context(server.connect()) for _ in range(count)]
    for wire in wires:
        wire.send(request("GET", "/"))
        while b"data: x" not in wire.unread:
            wire.unread += wire.sock.recv(65536)
    return wires


def sees_stream_drain(directory: Path) -> None:
    """Event streams end over so many seconds, though others could be told faster; those of a whole server at once."""
    ends = {}
    for drain in ("", "stream_drain = 1"):
        config = f"worker_class = 'asgi'\n{drain}\n"
        with Site(config, app="app:application", files={"app.py": SILENT}) as server, contextlib.ExitStack() as stack:
            wires = streams(server, 150, stack)
            server.signal(signal.SIGTERM)
            told = []
            for wire in wires:
                wire.reply()
                told.append(time.monotonic())
            ends[drain] = told[-1] - told[0]
    assert ends["stream_drain = 1"] > 0.7
    assert ends[""] < ends["stream_drain = 1"]


def sees_sse_retry(directory: Path) -> None:
    files = {"app.py": STREAM}
    with Site("sse_retry = '20-30'", app="app:application", files=files) as server, contextlib.ExitStack() as stack:
        (wire,) = streams(server, 1, stack)
        server.signal(signal.SIGTERM)
        assert re.search(rb"\n\nretry: (2\d|30)\n\n$", wire.reply().body)


def sees_sse_ping(directory: Path) -> None:
    config = "worker_class = 'asgi'\nsse_ping = 0.2"
    with Site(config, app="app:application", files={"app.py": SILENT}) as server, contextlib.ExitStack() as stack:
        (wire,) = streams(server, 1, stack)
        while b": ping\n\n" not in wire.unread:
            wire.unread += wire.sock.recv(65536)
