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
from tests.compat.effects.shared import HERE, shared
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


NAMES = """
def application(environ, start_response):
    start_response("200 OK", [("X-Sendfile", environ["PATH_INFO"])])
    return []
"""


@shared
def admin() -> Site:
    environ = {"PROMETHEUS_MULTIPROC_DIR": "metrics"}
    return Site(HERE + "admin_bind = f'unix:{here}/admin'\nmetrics_app = 'off'\n", env=environ)


@shared
def admin_elsewhere() -> Site:
    return Site(
        HERE + "admin_bind = f'unix:{here}/admin'\n"
        "health_path = '/alive'\n"
        "ready_path = '/prepared'\n"
        "metrics_path = '/numbers'\n"
        "admin_page = '/look'\n"
        "admin_status = True\n"
    )


@shared
def various() -> Site:
    return Site(
        HERE + "worker_class = 'gthread'\n"
        "threads = 3\n"
        "backlog = 17\n"
        "sendfile = False\n"
        "connection_max_requests = 3\n"
        "keepalive = 60\n"
        "load_report = 'orca'\n"
        "control_socket = f'{here}/control'\n"
        "control_socket_mode = 0o640\n"
        "server_header = False\n"
        "proc_name = 'shop'\n"
        "def when_ready(server):\n    server.log.info('name %s', server.proc_name)\n"
    )


@shared
def one_proxy() -> Site:
    return fact_site("trusted_proxy_headers = ['X-Forwarded-For']\n")


@shared
def two_proxies() -> Site:
    return fact_site(
        "trusted_proxy_headers = 'x-forwarded-for'\ntrusted_proxy_count = 2\nclear_untrusted_proxy_headers = False\n"
    )


@shared
def far_from_proxies() -> Site:
    return fact_site("trusted_proxies = '10.0.0.0/8'\nproxy_protocol = True\n")


@shared
def impatient() -> Site:
    return Site(
        "worker_class = 'gthread'\n"
        "threads = 4\n"
        "header_timeout = 1\n"
        "body_timeout = 1\n"
        "body_min_rate = 100000\n"
        "keepalive = 1\n"
    )


@shared
def spooling() -> Site:
    return Site(
        HERE + "worker_class = 'gthread'\n"
        "threads = 4\n"
        "tmp_upload_dir = here\n"
        "body_buffer_size = 1000\n"
        "body_disk_total = 0\n"
        "title_prefix = 'gunicorn'\n"
        "proc_name = 'shop'\n"
    )


@shared
def low_totals() -> Site:
    return Site(
        HERE + "worker_class = 'gthread'\n"
        "threads = 2\n"
        "tmp_upload_dir = here\n"
        "body_buffer_total = 1000\n"
        "response_buffer_total = 1000\n"
    )


@shared
def unbuffered() -> Site:
    return Site("worker_class = 'gthread'\nthreads = 2\nresponse_buffering = False\nrequest_buffering = False\n")


def ask(server: Site, path: str) -> int:
    """The status of an answer of the admin listener."""
    with Wire(str(server.directory / "admin")) as wire:
        return wire.get(path).status


def sees_admin_bind(admin: Site) -> None:
    assert admin.get("/hello").status == 200
    until(lambda: ask(admin, "/readyz") == 200, "readiness")
    assert ask(admin, "/healthz") == 200
    assert ask(admin, "/hello") == 404


def sees_health_path(admin_elsewhere: Site) -> None:
    until(lambda: ask(admin_elsewhere, "/alive") == 200, "health")
    assert ask(admin_elsewhere, "/healthz") == 404


def sees_ready_path(admin_elsewhere: Site) -> None:
    until(lambda: ask(admin_elsewhere, "/prepared") == 200, "readiness")
    assert ask(admin_elsewhere, "/readyz") == 404


def sees_metrics_path(admin_elsewhere: Site) -> None:
    until(lambda: ask(admin_elsewhere, "/numbers") == 200, "metrics")
    assert ask(admin_elsewhere, "/metrics") == 404


def sees_admin_page(admin_elsewhere: Site) -> None:
    until(lambda: ask(admin_elsewhere, "/look") == 200, "the page")
    assert (ask(admin_elsewhere, "/"), ask(admin_elsewhere, "/look/live.json")) == (404, 200)


def sees_admin_status(admin_elsewhere: Site) -> None:
    until(lambda: ask(admin_elsewhere, "/status") == 200, "the status")


def sees_metrics_app(admin: Site) -> None:
    until(lambda: ask(admin, "/metrics") == 200, "metrics")
    assert not (admin.directory / "metrics").exists()


def sees_load_report(various: Site) -> None:
    until(lambda: various.get("/").get("endpoint-load-metrics"), "the field")


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
    with Site(f"admin_bind = '127.0.0.1:{port}'\nadmin_allow = '192.0.2.0/24'\n"), Wire(("127.0.0.1", port)) as wire:
        assert wire.get("/healthz").status == 403


def sees_trusted_proxy_headers(one_proxy: Site) -> None:
    fields = [("X-Forwarded-For", "192.0.2.1, 192.0.2.2"), ("Forwarded", "for=192.0.2.3")]
    environ = facts(one_proxy, *fields)["environ"]
    assert (environ["REMOTE_ADDR"], "HTTP_FORWARDED" in environ) == ("192.0.2.2", False)


def sees_proxy_protocol_required(directory: Path) -> None:
    with fact_site("proxy_protocol = 'v1'\nproxy_protocol_required = True\n") as server:
        assert server.get("/").status == 400


def sees_trusted_proxy_count(two_proxies: Site) -> None:
    environ = facts(two_proxies, ("X-Forwarded-For", "192.0.2.1, 192.0.2.2"))["environ"]
    assert environ["REMOTE_ADDR"] == "192.0.2.1"


def sees_clear_untrusted_proxy_headers(two_proxies: Site) -> None:
    assert facts(two_proxies, ("Forwarded", "for=192.0.2.3"))["environ"]["HTTP_FORWARDED"] == "for=192.0.2.3"


def sees_request_timeout(directory: Path) -> None:
    with Site("request_timeout = 0.3\n", app="stuck:application") as server:
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


def sees_canary(directory: Path) -> None:
    with Site("workers = 4\ncanary = '50%'\ncanary_time = 5\n", workers=4) as server:
        server.log.wait("Ready: ")
        server.signal(signal.SIGHUP)
        server.log.wait("Canary: comparing 2 of 4 new workers with the old ones for 5 seconds")
        assert len(server.worker_pids()) == 6
        server.log.wait("starting the other new workers")
        until(lambda: len(server.worker_pids()) == 4, "the new generation alone")


def sees_canary_time(directory: Path) -> None:
    with Site("canary = 1\ncanary_time = 1\n") as server:
        server.log.wait("Ready: ")
        server.signal(signal.SIGHUP)
        server.log.wait("Canary: comparing 1 of 1 new workers")
        began = time.monotonic()
        server.log.wait("starting the other new workers")
        assert 0.8 < time.monotonic() - began < 20


def sees_canary_requests(directory: Path) -> None:
    with Site("canary = 1\ncanary_time = 1\ncanary_requests = 7\n") as server:
        server.log.wait("Ready: ")
        server.signal(signal.SIGHUP)
        server.log.wait(r"Canary: judged by 0 requests only \(canary_requests = 7\)")


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


def sees_connection_max_requests(various: Site) -> None:
    with various.connect() as wire:
        assert [wire.get("/hello").closes for _ in range(3)] == [False, False, True]
        assert wire.ended() == b""
    assert various.get("/hello").status == 200


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


def ends(server: Site, sent: bytes) -> None:
    """A client that sends this and then nothing is cut off, long before the default deadlines of a minute."""
    with server.connect(timeout=AT_ONCE) as wire:
        wire.send(sent)
        wire.ended()


def sees_header_timeout(impatient: Site) -> None:
    ends(impatient, b"GET / HT")


def sees_body_timeout(impatient: Site) -> None:
    ends(impatient, b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")


def sees_body_min_rate(impatient: Site) -> None:
    """A client that keeps sending is cut off all the same, for it sends too slowly."""
    with impatient.connect() as wire:
        wire.send(b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n")

        def cut_off() -> bool:
            try:
                wire.send(b"x" * 1000)  # 20 kB a second: enough by default
            except OSError:
                return True
            return not wire.still_open(0.05)

        until(cut_off, "it is cut off")


def sees_write_timeout() -> None:
    """A client that does not read the answer is given up, and its thread is free again."""
    with (
        Site("worker_class = 'gthread'\nthreads = 2\nwrite_timeout = 1\naccesslog = '-'\n") as server,
        server.connect(receive_buffer=4096) as wire,
    ):
        wire.send(request("GET", "/stream?count=400&size=100000&marked"))
        server.out.wait("marked")
        wire.reset()


def spools(server: Site, directory: Path) -> None:
    """A body of this size is kept in a file below the server's directory."""
    gate = directory / "gate"
    with server.connect() as wire:
        wire.send(request("POST", f"/gate?open={gate}", body=b"x" * 300_000))
        until(lambda: list(directory.glob("gate.in.*")), "the request is in the application")
        assert files_below(server, server.directory)
        gate.touch()
        assert wire.reply().text.endswith(" 300000")


def sees_body_buffer_size(spooling: Site, directory: Path) -> None:
    spools(spooling, directory)


def sees_body_buffer_total(low_totals: Site, directory: Path) -> None:
    """Bodies that are small, but not together: they are kept in files too."""
    spools(low_totals, directory)


def sees_body_disk_total(spooling: Site) -> None:
    """A body that alone is larger is refused before it is sent; 0 is no limit."""
    head = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\n\r\n"
    with Site("worker_class = 'gthread'\nbody_buffer_size = 1000\nbody_disk_total = 2000\n") as server:
        assert raw(server, head).startswith(b"HTTP/1.1 413 ")
        assert server.post("/body", b"x" * 1900).status == 200
    assert spooling.post("/body", b"x" * 3000).status == 200


def sees_disk_budget(directory: Path) -> None:
    """Four fifths of it are for request bodies."""
    head = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 33000\r\n\r\n"
    with Site("worker_class = 'gthread'\nbody_buffer_size = 1000\ndisk_budget = '40K'\n") as server:
        assert raw(server, head).startswith(b"HTTP/1.1 413 ")
        assert server.post("/body", b"x" * 32_000).status == 200


def sees_trusted_proxies(far_from_proxies: Site, announced_to: Site) -> None:
    """Whom it names is believed in fields and in headers of the PROXY protocol."""
    for server, believes in ((far_from_proxies, False), (announced_to, True)):
        assert (announced(server)[0] == 200) is believes
        scheme = facts(server, ("X-Forwarded-Proto", "https"))["environ"]["wsgi.url_scheme"]
        assert scheme == ("https" if believes else "http")


def sees_leniency(distrusting: Site) -> None:
    assert status(distrusting, request("gEt", "/hello")) == 200


def sees_limit_request_body(narrow: Site) -> None:
    assert narrow.post("/body", b"x" * 900).status == 200
    answer = raw(narrow, b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 2000\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 "), "before the body is sent"
    head = request("POST", "/body", [("Transfer-Encoding", "chunked")])
    assert raw(narrow, head + chunked([b"x" * 600] * 3)).startswith(b"HTTP/1.1 413 ")


def sees_request_buffering(unbuffered: Site) -> None:
    """The application answers before the body has come."""
    with unbuffered.connect() as wire:
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


def sees_response_buffering(spooling: Site, unbuffered: Site) -> None:
    """Off, the application waits for its client."""
    with spooling.connect() as wire:
        long_report(spooling, wire)
        until(lambda: produced(spooling) == PIECES, "all is produced")
    with unbuffered.connect() as wire:
        long_report(unbuffered, wire)
        until(lambda: waits(unbuffered), "it waits")


def sees_response_buffer_size(directory: Path) -> None:
    """All of the response fits in memory."""
    config = "worker_class = 'gthread'\nthreads = 2\nresponse_buffering = 'off'\nresponse_buffer_size = '64M'\n"
    with Site(config) as server, server.connect() as wire:
        long_report(server, wire)
        until(lambda: produced(server) == PIECES, "all is produced")


def sees_response_buffer_total(low_totals: Site) -> None:
    """A response that is one piece goes to disk, too."""
    with low_totals.connect() as wire:
        wire.send(request("GET", f"/blob?size={PIECES * PIECE}"))
        until(lambda: on_disk(low_totals, low_totals.directory), "the file")
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


def sees_request_id(trusting: Site) -> None:
    given = facts(trusting, ("X-Request-ID", "from-outside-1"))
    assert given["environ"]["tricorn.request_id"] == "from-outside-1"
    first, second = (facts(trusting)["environ"]["tricorn.request_id"] for _ in range(2))
    assert first
    assert first != second
    assert trusting.get("/").get("X-Request-ID")


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
    with Site("unavailable = 'warn'\ndirty_apps = ['shop:jobs']\ndirty_workers = 2\n") as server:
        assert server.get("/hello").status == 200
        assert len(server.log.matching(r"\[WARNING\] .*setting dirty_apps .* was ignored")) == 1
    with Site("dirty_apps = ['shop:jobs']\n", wait=False) as server:
        assert server.wait_exit() == 1
        assert "setting dirty_apps is not available" in server.log.text


def head(server: Site) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in server.get("/").fields:
        found.setdefault(name.lower(), []).append(value)
    return found


def sees_server_header(trusting: Site, various: Site, plain: Site) -> None:
    for server, expected in ((trusting, ["shop/2"]), (various, None), (plain, ["tricorn"])):
        assert head(server).get("server") == expected


def sees_date_header(trusting: Site, plain: Site) -> None:
    assert "date" not in head(trusting)
    assert "date" in head(plain)


def sees_headers(directory: Path) -> None:
    with Site("headers = ['X-Frame-Options: DENY', ('X-A', '1'), 'X-A: 2', 'Server: shop']\n") as server:
        fields = head(server)
        assert (fields["x-frame-options"], fields["x-a"], fields["server"]) == (["DENY"], ["1", "2"], ["shop"])
    with Site("headers = ['X-A: 1\\r\\nX-B: 2']\n", wait=False) as server:
        assert server.wait_exit() == 1


def _serves_files(directory: Path, settings: str) -> Site:
    (directory / "index.html").write_text("index")
    (directory / "other.html").write_text("other")
    return Site(f"static_map = ['/files={directory}']\n{settings}")


def sees_static_map(directory: Path) -> None:
    with _serves_files(directory, "") as server:
        reply = server.get("/files/other.html")
        assert (reply.text, reply.get("cache-control")) == ("other", None)
    with Site(f"static_map = ['/files={directory}/none']\n", wait=False) as server:
        assert server.wait_exit() == 1


def sees_static_index(directory: Path) -> None:
    with _serves_files(directory, "static_index = 'other.html'\n") as server:
        assert server.get("/files/").text == "other"


def sees_static_cache_control(directory: Path) -> None:
    with _serves_files(directory, "static_cache_control = 'max-age=60'\n") as server:
        assert server.get("/files/other.html").get("cache-control") == "max-age=60"


def sees_x_sendfile(directory: Path) -> None:
    (directory / "file").write_text("file")
    with Site(f"x_sendfile = [{str(directory)!r}]", files={"named.py": NAMES}, app="named:application") as server:
        assert server.get(f"{directory}/file").text == "file"


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


def sees_control_socket_mode(various: Site) -> None:
    assert stat.S_IMODE((various.directory / "control").stat().st_mode) == 0o640


def sees_control_read_only() -> None:
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
