"""The pytest plugin, in a pytest of a user's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.beyond_reference("it has no plugin")
PLUGIN = "tricorn.testing.plugin"

SUITE = """\
import os, sys, urllib.request
import pytest

def app(environ, start_response):
    print("called", environ["PATH_INFO"])
    start_response("200 OK", [])
    return [b"%d" % os.getppid()]

def get(server):
    with urllib.request.urlopen(server.url + "/path") as response:
        return response.read()

def test_nothing_is_imported_before_it_is_used():
    assert "tricorn.testing.server" not in sys.modules

pids = []

def test_two_servers(tricorn_server):
    for app_or_name in (app, "test_suite:app"):
        server = tricorn_server(app_or_name, worker_class="gthread")
        assert get(server) == b"%d" % server.pid
        pids.append(server.pid)

def test_both_are_gone():
    assert len(pids) == 2
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]

def test_that_fails(tricorn_server):
    get(tricorn_server(app))
    assert False
"""


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Named, and not found by its entry point: a checkout need not be installed.
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environ = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": PLUGIN}
    environ.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(command, cwd=directory, env=environ, capture_output=True, text=True, check=False)


def test_a_suite_with_servers(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    done = run(tmp_path, "-q", "test_suite.py")
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    log = done.stdout.partition("Log of the server at http://127.0.0.1:")[2]
    assert "Listening at" in log
    assert "called /path" in log


def test_its_fixture_is_documented(tmp_path: Path) -> None:
    (tmp_path / "test_none.py").write_text("")
    assert "Starts servers" in run(tmp_path, "--fixtures", "test_none.py").stdout
