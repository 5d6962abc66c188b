"""Tasks of a new user: the search finds the page, and the commands under its heading do the task."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

import pytest

from tests.harness.deadline import PATIENCE, until
from tests.harness.pages import DOCS, Command, File, Run

FAQ = "get-started/faq"
APPLICATION = """\
import os, time

def app(environ, start_response):
    environ["wsgi.input"].read()
    if environ["PATH_INFO"] == "/slow":
        open("started", "w").close()
        time.sleep(3)
    client = environ["wsgi.url_scheme"] + " " + environ["REMOTE_ADDR"]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"version 1 by {os.getpid()} for {client}".encode()]
"""


class Answer(NamedTuple):
    status: int
    text: str

    @property
    def worker(self) -> int:
        return int(re.findall(r"by (\d+)", self.text)[0])


class Server:
    """A server that was started by a command of the documentation, and clients of it."""

    def __init__(self, run: Run, commands: Sequence[str]) -> None:
        self.run = run
        self.commands = commands

    def start(self, command: str) -> None:
        self.run.make(Command(command, ("…Ready:…",)))

    def do(self, command: str) -> None:
        self.run.make(Command(command, ()))

    def get(self, path: str = "/", *, port: int = 8000, body: bytes | None = None, **fields: str) -> Answer:
        address = self.run.here(f"http://127.0.0.1:{port}{path}")
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        try:
            with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=PATIENCE) as response:
                return Answer(response.status, response.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read().decode())

    def edit(self, old: str, new: str) -> None:
        path = self.run.directory / "main.py"
        path.write_text(path.read_text().replace(old, new))

    def has_logged(self, words: str) -> bool:
        assert self.run.log is not None
        return words in self.run.log.text


def section(page: str, heading: str) -> str:
    text = (DOCS / f"{page}.md").read_text()
    found = re.search(rf"^## {re.escape(heading)}$\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"{page} has no heading {heading!r}"
    return found[1]


def commands(page: str, heading: str) -> list[str]:
    """The commands that a page names under a heading."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", section(page, heading), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


@contextmanager
def serving(command: str, *others: str) -> Iterator[Server]:
    with Run() as run:
        run.make(File("main.py", APPLICATION))
        server = Server(run, others)
        server.start(command)
        yield server


def following(heading: str) -> AbstractContextManager[Server]:
    """The server that the first command under a heading of the FAQ starts; the other commands are the task's to do."""
    return serving(*commands(FAQ, heading))


def allow_larger_uploads() -> None:
    with following("413: upload too large") as server:
        assert server.get(body=bytes(20 << 20)).status == 200
        assert server.get(body=bytes((20 << 20) + 1)).status == 413


def give_requests_more_time() -> None:
    (command,) = commands(FAQ, "WORKER TIMEOUT")
    with serving(re.sub(r"--timeout \d+", "--timeout 1", command)) as server:
        assert server.get("/slow").status == 500
        until(lambda: server.has_logged("WORKER TIMEOUT"), "the log has the worker")
        until(lambda: server.has_logged("in app\n"), "the log has the stack")
        server.start(command)
        assert server.get("/slow").status == 200


def restart_workers_regularly() -> None:
    with following("Max requests: how do I restart workers regularly?") as server:
        client = http.client.HTTPConnection(server.run.here("127.0.0.1:8000"), timeout=PATIENCE)
        workers = []
        end = time.monotonic() + PATIENCE
        # Over one connection, which stays with its worker for as long as that serves: until its successor is ready.
        while len(set(workers)) < 2 and time.monotonic() < end:
            client.request("GET", "/")
            workers.append(Answer(200, client.getresponse().read().decode()).worker)
        client.close()
        assert len(set(workers)) == 2
        assert len(workers) > 1000


def stop_without_losing_requests() -> None:
    heading = "Graceful shutdown: how do I stop without losing requests?"
    with following(heading) as server, concurrent.futures.ThreadPoolExecutor() as pool:
        answer = pool.submit(server.get, "/slow")
        until((server.run.directory / "started").exists, "the request runs")
        for command in server.commands:
            server.do(command)
        assert answer.result().status == 200


def deploy_without_losing_requests() -> None:
    with following("Zero-downtime reload: how do I deploy without losing requests?") as server:
        answers: list[Answer] = []
        is_over = threading.Event()

        def ask() -> None:
            while not is_over.is_set():
                answers.append(server.get())

        client = threading.Thread(target=ask)
        client.start()
        try:
            server.edit("version 1", "version 2")
            for command in server.commands:
                server.do(command)
            until(lambda: answers[-1].text.startswith("version 2"), "the new code answers")
        finally:
            is_over.set()
            client.join()
        assert {answer.status for answer in answers} == {200}


def see_changes_at_once() -> None:
    with following("Auto-reload, hot reload: how do I see my changes at once?") as server:
        assert server.get().text.startswith("version 1")
        server.edit("version 1", "version 2")
        until(lambda: server.get().text.startswith("version 2"), "the changed code answers")


def export_metrics_and_health() -> None:
    with following("Prometheus metrics and health checks: which address?") as server:
        for path in re.findall(r"`(/\w+)`", section(FAQ, "Prometheus metrics and health checks: which address?")):
            assert server.get(path, port=8001).status == 200, path
        assert "# TYPE tricorn_" in server.get("/metrics", port=8001).text


def write_json_logs() -> None:
    with following("JSON logging: how do I get structured logs?") as server:
        server.get("/hello")
        until(lambda: server.has_logged('"path":"/hello"'), "the request is in the log")
        assert server.run.log is not None
        assert all(isinstance(json.loads(line), dict) for line in server.run.log.lines)


def see_the_clients_address() -> None:
    with following("My application sees the proxy's IP address, or http instead of https") as server:
        answer = server.get(X_Forwarded_For="203.0.113.9", X_Forwarded_Proto="https")
        assert answer.text.endswith("for https 203.0.113.9")


def find_who_has_the_port() -> None:
    (command,) = commands(FAQ, "Address already in use, port already in use")
    with following("WORKER TIMEOUT") as server:
        shown = server.run.here(f"{command} | grep -E '127.0.0.1:8000 .*pid='")
        server.do(shown)


TASKS: dict[str, Callable[[], None]] = {
    "upload too large": allow_larger_uploads,
    "worker timeout": give_requests_more_time,
    "max requests": restart_workers_regularly,
    "graceful shutdown": stop_without_losing_requests,
    "zero downtime": deploy_without_losing_requests,
    "hot reload": see_changes_at_once,
    "prometheus": export_metrics_and_health,
    "logging json": write_json_logs,
    "client ip": see_the_clients_address,
    "port already in use": find_who_has_the_port,
}
"""Tasks by the words that a new user types into the search. tests/docs/test_site.py searches for them."""


@pytest.mark.parametrize("words", TASKS)
def test_a_task_is_done_by_the_commands_of_its_page(words: str) -> None:
    TASKS[words]()
