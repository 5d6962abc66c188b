"""The real packages of monitoring agents see the same requests here as under gunicorn and uvicorn."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.harness.deadline import until
from tests.harness.server import free_port
from tests.harness.wire import Reply, Wire

ENVIRONMENT = Path(os.environ["TRICORN_TEST_AGENTS"])
PACKAGE = Path(__file__).parents[2] / "python"
APPS = Path(__file__).parent / "apps"


class Agent(NamedTuple):
    wrapper: str = ""
    """The command that starts programs under the agent."""
    variables: dict[str, str] = {}  # noqa: RUF012  (never changed)
    both: bool = True
    """It has something for FastAPI as well."""


AGENTS = {
    "sentry": Agent(),
    "elastic": Agent(),
    "datadog": Agent(
        "ddtrace-run",
        {
            "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
            "DD_REMOTE_CONFIGURATION_ENABLED": "false",
            "DD_TRACE_AGENT_URL": "http://127.0.0.1:9",
        },
    ),
    "newrelic": Agent(
        "newrelic-admin run-program",
        {
            "NEW_RELIC_LICENSE_KEY": "0" * 40,
            "NEW_RELIC_APP_NAME": "shop",
            "NEW_RELIC_DEVELOPER_MODE": "true",
            "NEW_RELIC_STARTUP_TIMEOUT": "20",
        },
    ),
    "opentelemetry": Agent(
        "opentelemetry-instrument",
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"},
    ),
}
REFERENCES = {"flask_main": ("gunicorn", "-b", "127.0.0.1:{}"), "fastapi_main": ("uvicorn", "--port", "{}")}
HERE = ("tricorn", "-b", "127.0.0.1:{}")
REQUESTS = (("/", 200), ("/users/7", 200), ("/boom", 500))


class Running(NamedTuple):
    port: int
    notes: Path

    def get(self, path: str) -> Reply:
        with Wire(("127.0.0.1", self.port)) as wire:
            return wire.get(path)

    def noted(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.notes.read_text().splitlines()] if self.notes.exists() else []


@contextmanager
def running(
    server: tuple[str, ...], app: str, name: str, agent: Agent, directory: Path, *more: str, **variables: str
) -> Iterator[Running]:
    port = free_port()
    notes = directory / f"{server[0]}.notes"
    module, *options = (part.format(port) for part in server)
    wrapper = agent.wrapper.split()
    command = [str(ENVIRONMENT / "bin" / word) for word in wrapper[:1]] + wrapper[1:]
    command += [str(ENVIRONMENT / "bin" / "python"), "-m", module, *options, *more, f"{app}:app"]
    environ = {
        "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{APPS}:{PACKAGE}",
        "NOTES": str(notes),
    }
    log = (directory / f"{server[0]}.log").open("w+b")
    process = subprocess.Popen(
        command, env=environ | agent.variables | variables | {"AGENT": name}, cwd=directory, stdout=log, stderr=log
    )
    try:
        until(lambda: accepts(port) or process.poll() is not None, "the server accepts connections", within=60)
        yield Running(port, notes)
    except BaseException:
        log.seek(0)
        sys.stderr.write(log.read().decode(errors="replace"))
        raise
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        finally:
            process.kill()
            log.close()


def accepts(port: int) -> bool:
    with suppress(OSError), Wire(("127.0.0.1", port)):
        return True
    return False


def seen(server: tuple[str, ...], app: str, name: str, directory: Path) -> list[dict[str, Any]]:
    """What the agent has told of the requests, in an order that does not depend on when."""
    with running(server, app, name, AGENTS[name], directory) as it:
        for path, status in REQUESTS:
            assert it.get(path).status == status
    return sorted(it.noted(), key=repr)


@pytest.mark.parametrize("app", sorted(REFERENCES))
@pytest.mark.parametrize("name", sorted(AGENTS))
def test_an_agent_sees_the_same(name: str, app: str, tmp_path: Path) -> None:
    there = seen(REFERENCES[app], app, name, tmp_path)
    here = seen(HERE, app, name, tmp_path)
    assert len(there) >= len(REQUESTS), there
    assert here == there


@pytest.mark.parametrize("worker_class", ["gevent", "eventlet"])
@pytest.mark.parametrize("name", sorted(AGENTS))
def test_greenlet_workers_answer_every_request(name: str, worker_class: str, tmp_path: Path) -> None:
    """More requests than Python allows recursions: what an agent leaves behind with each adds up."""
    with (
        running((*HERE, "-k", worker_class), "flask_main", name, AGENTS[name], tmp_path) as it,
        Wire(("127.0.0.1", it.port)) as wire,
    ):
        statuses = {wire.get("/").status for _ in range(sys.getrecursionlimit() + 200)}
    assert statuses == {200}


def test_sentry_reports_an_exception_once(tmp_path: Path) -> None:
    """Not the line of the log as well, which is written in the task's context."""
    events = [each for each in seen(HERE, "fastapi_main", "sentry", tmp_path) if "event" in each]
    assert [each["event"] for each in events] == [["ValueError"]]


def test_prometheus_sums_over_workers(tmp_path: Path) -> None:
    """prometheus-flask-exporter, as its documentation has it for gunicorn."""
    found = {}
    for server in (REFERENCES["flask_main"], HERE):
        directory = tmp_path / server[0]
        directory.mkdir()
        (directory / "multiprocess").mkdir()
        variables = {"PROMETHEUS_MULTIPROC_DIR": str(directory / "multiprocess")}
        with running(server, "flask_main", "prometheus", Agent(), directory, "-w", "2", **variables) as it:
            for path, status in REQUESTS * 4:
                assert it.get(path).status == status
            text = it.get("/metrics").text
        found[server[0]] = sorted(re.findall(r"^flask_http_request_total.*|^flask_\w+(?={)", text, re.MULTILINE))
    assert found["tricorn"] == found["gunicorn"]
    assert 'flask_http_request_total{method="GET",status="200"} 8.0' in found["tricorn"]
