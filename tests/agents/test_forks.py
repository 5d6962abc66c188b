"""Agents report from both sides of a fork of a process that they have reported from, or the fork is refused."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent
from threading import Thread

import pytest

ENVIRONMENT = Path(os.environ["TRICORN_TEST_AGENTS"])
PACKAGE = Path(__file__).parents[2] / "python"


class Collector(BaseHTTPRequestHandler):
    """Takes reports of any agent. `GET /seen/TEXT` says whether one had the text."""

    protocol_version = "HTTP/1.1"
    server: CollectorServer

    def do_POST(self) -> None:
        self.server.reports.append(unpacked(self.body()))
        self.answer(b"{}")

    do_PUT = do_POST

    def do_GET(self) -> None:
        _, _, text = self.path.partition("/seen/")
        self.answer(b"yes" if text and self.server.has_seen(text.encode()) else b"{}")

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def unpacked(body: bytes) -> bytes:
    for unpack in (gzip.decompress, zlib.decompress):
        with suppress(OSError, zlib.error):
            return unpack(body)
    return body


class CollectorServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Collector)
        self.reports: list[bytes] = []
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", 0))
        self.datagrams.setblocking(False)

    def has_seen(self, text: bytes) -> bool:
        with suppress(BlockingIOError):
            while True:
                self.reports.append(self.datagrams.recv(65536))
        return any(text in report for report in self.reports)


@pytest.fixture(scope="module")
def collector() -> Iterator[CollectorServer]:
    with serving() as server:
        yield server


@contextmanager
def serving() -> Iterator[CollectorServer]:
    with CollectorServer() as server, closing(server.datagrams):
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        try:
            yield server
        finally:
            server.shutdown()


BEGIN = """
import os, sys, time
from urllib.request import urlopen
from tricorn.workers.connections import close_idle
from tricorn.workers.fork_audit import REFORK, Audit, open_files

own = list(open_files())
http, datagrams = int(sys.argv[1]), int(sys.argv[2])
url = f"http://127.0.0.1:{http}"
"""
ON_BOTH_SIDES = """
def report(text):
    send(text)
    deadline = time.monotonic() + 30
    while urlopen(f"{url}/seen/{text}").read() != b"yes":
        if time.monotonic() > deadline:
            os.write(2, f"no report had {text}".encode())
            os._exit(1)
        time.sleep(0.05)

def fork():
    Audit(REFORK, own).check(close_idle)
    return os.fork()

pids = []
report(f"{sys.argv[3]}-0")
while (generation := len(pids) + 1) <= 2:
    pids.append(fork())
    report(f"{sys.argv[3]}-{generation}-{'fork' if pids[-1] == 0 else 'parent'}")
    if pids[-1]:
        break
if pids[-1]:
    assert os.waitpid(pids[-1], 0)[1] == 0
os._exit(0)
"""
"""A fork of the fork, too."""

AGENTS = {
    "sentry": """
        import sentry_sdk
        sentry_sdk.init(f"http://key@127.0.0.1:{http}/1")
        send = sentry_sdk.capture_message
        """,
    "elastic": """
        import elasticapm
        send = elasticapm.Client(service_name="shop", server_url=url, api_request_time="100ms").capture_message
        """,
    "datadog": """
        os.environ["DD_TRACE_AGENT_URL"] = url
        import ddtrace.auto
        from ddtrace import tracer

        def send(text):
            with tracer.trace(text):
                pass
        """,
    "statsd": """
        from datadog import initialize, statsd
        initialize(statsd_host="127.0.0.1", statsd_port=datagrams, statsd_disable_buffering=False)
        send = statsd.increment
        """,
    "opentelemetry": """
        from urllib.request import Request
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

        class Exporter(SpanExporter):
            def export(self, spans):
                for span in spans:
                    urlopen(Request(url, span.name.encode(), method="POST")).read()
                return SpanExportResult.SUCCESS

        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(Exporter(), schedule_delay_millis=50))

        def send(text):
            with provider.get_tracer("shop").start_as_current_span(text):
                pass
        """,
}
NEWRELIC = """
    os.environ |= {"NEW_RELIC_LICENSE_KEY": "0" * 40, "NEW_RELIC_APP_NAME": "shop", "NEW_RELIC_DEVELOPER_MODE": "true"}
    import newrelic.agent
    newrelic.agent.initialize()
    newrelic.agent.register_application(timeout=20)
    Audit(REFORK, own).check(close_idle)
    """


def run(code: str, collector: CollectorServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    ports = (str(collector.server_address[1]), str(collector.datagrams.getsockname()[1]))
    return subprocess.run(
        [ENVIRONMENT / "bin/python", "-c", BEGIN + dedent(code), *ports, *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_reports_from_both_sides_of_a_fork(agent: str, collector: CollectorServer) -> None:
    done = run(dedent(AGENTS[agent]) + ON_BOTH_SIDES, collector, agent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_new_relic_is_refused(collector: CollectorServer) -> None:
    done = run(NEWRELIC, collector)
    assert done.returncode == 1
    assert "the thread 'NR-Harvest-Thread'" in done.stderr, done.stderr
    assert "New Relic reports nothing from a fork of a process that it has registered. Do not set refork" in done.stderr
