"""The image of the server, and that of an application: built, locked up as the chart does it, asked and stopped."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.deploy import images
from tests.deploy.images import Container, build, container, podman
from tests.harness.deadline import PATIENCE, until
from tests.harness.server import free_port
from tests.harness.wire import Reply, Wire

HELLO = images.ROOT / "examples/hello"
SLOW = """\
import time

def app(environ, start_response):
    time.sleep(3 if environ["PATH_INFO"] == "/slow" else 0)
    start_response("200 OK", [("Content-Length", "4")])
    return [b"done"]
"""
USER = 10001
pytestmark = pytest.mark.timeout(images.LONG)


@pytest.fixture(scope="module")
def minor(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the Python in the images."""
    if (reason := images.lacking()) is not None:
        pytest.skip(reason)
    images.make_rust()
    return images.make_python(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def image(minor: str) -> str:
    """That of the repository's Dockerfile."""
    build(images.ROOT, "localhost/tricorn", "--build-arg", f"PYTHON={minor}")
    return "localhost/tricorn"


def serves(running: Container) -> bool:
    try:
        return Wire(running.address).get("/").status == 200
    except OSError:
        return False


def test_it_serves_as_an_ordinary_user_and_can_write_nothing(image: str) -> None:
    with container(image, "app:app", options=("--volume", f"{HELLO}:/app:ro")) as running:
        until(lambda: serves(running), "it serves")
        assert Wire(running.address).get("/podman").body == b"Hello, podman!\n"
        assert running.run("python", "-c", "import os; print(os.getuid(), os.getgid())") == f"{USER} {USER}"
        first = running.run("python", "-c", "print(open('/proc/1/cmdline').read().replace(chr(0), ' '))")
        assert "tricorn" in first, "the arbiter is process 1"
        podman("healthcheck", "run", running.name, within=PATIENCE)
        refused = "import os\ntry: open('/app/x', 'w')\nexcept OSError as error: print(error.errno == 30)"
        assert running.run("python", "-c", refused) == "True"
        assert not re.search("ERROR|WARNING", running.log), running.log


def test_the_image_has_no_build_tools(image: str) -> None:
    with container(image, "app:app", options=("--volume", f"{HELLO}:/app:ro")) as running:
        found = running.run("python", "-c", "import shutil; print(*map(shutil.which, ['cargo', 'rustc', 'gcc']))")
    assert found == "None None None"


def test_a_stop_lets_a_request_finish(image: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "app.py").write_text(SLOW)
    with container(image, "app:app", options=("--volume", f"{tmp_path}:/app:ro")) as running:
        until(lambda: serves(running), "it serves")
        wire, replies = Wire(running.address), list[Reply]()
        asks = threading.Thread(target=lambda: replies.append(wire.get("/slow")))
        asks.start()
        until(lambda: "/slow" in running.run("tricorn", "ctl", "requests"), "the request is under way")
        podman("stop", "--time", "30", running.name, within=PATIENCE)
        asks.join(PATIENCE)
        assert [reply.body for reply in replies] == [b"done"]
        assert running.says("{{.State.ExitCode}}") == "0"


def test_the_image_that_init_prints(minor: str, tmp_path: Path) -> None:
    """An application with its requirements; the wheel of tricorn comes from a folder, as no index has this version."""
    build(images.ROOT, "localhost/built", "--build-arg", f"PYTHON={minor}", "--target", "build")
    shutil.copy(HELLO / "app.py", tmp_path)
    (tmp_path / "requirements.txt").write_text("--find-links /wheels\n")
    port = free_port()
    command = [sys.executable, "-m", "tricorn", "init", "docker", "-o", ".", "-b", f"0.0.0.0:{port}", "app:app"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=PATIENCE, capture_output=True)
    printed = tmp_path / "Dockerfile"
    text = printed.read_text().replace(f"python:3.{sys.version_info.minor}-slim", f"python:{minor}-slim")
    first, _, rest = text.partition("RUN pip install")
    assert rest, text
    printed.write_text(f"{first}COPY --from=localhost/built /wheels /wheels\nRUN pip install{rest}")
    build(tmp_path, "localhost/shop")
    with container("localhost/shop", port=port) as running:
        until(lambda: serves(running), "it serves")
        assert running.run("id", "-u") == str(USER)
        podman("healthcheck", "run", running.name, within=PATIENCE)
