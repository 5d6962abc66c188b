"""The operator's mistakes: gunicorn's exit code, one sentence that says what to do, nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harness import NO_BOOT, REFERENCE, Site, module, until
from tests.harness.server import free_port


@dataclass(frozen=True)
class Mistake:
    """What is wrong, what the server exits with, and a word its message must have.

    `frames` are allowed only where the mistake is in Python code the operator wrote.
    """

    says: str
    code: int | tuple[int, ...] = 1
    args: tuple[str, ...] = ()
    conf: str = ""
    app: str = "mine:application"
    files: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    frames: bool = False
    reference: str | None = None
    """Why the reference server does not do it well: it is not held to it then."""


WORDY = "it answers with a traceback"
MISTAKES = {
    "unknown_flag": Mistake("--no-such-flag", 2, args=("--no-such-flag",)),
    "flag_without_value": Mistake("-w", 2, args=("-w",)),
    "not_a_number": Mistake("workers", (1, 2), args=("-w", "many")),
    "negative": Mistake("timeout", (1, 2), args=("-t", "-5")),
    "not_a_choice": Mistake("header_map|header-map", (1, 2), args=("--header-map", "perhaps")),
    "bad_allow_list": Mistake(
        "forwarded_allow_ips|forwarded-allow-ips", (1, 2), args=("--forwarded-allow-ips", "1.2.3")
    ),
    "bad_address": Mistake("bind|address|port", (1, 2), args=("-b", "127.0.0.1:http"), reference=WORDY),
    "bad_class": Mistake("no_such_class", (1, 2), args=("-k", "no_such_class"), reference=WORDY),
    "bad_logger_class": Mistake("no_such.Logger", 1, args=("--logger-class", "no_such.Logger"), reference=WORDY),
    "no_such_config": Mistake("/nonexistent/conf.py", 1, args=("-c", "/nonexistent/conf.py")),
    "no_such_chdir": Mistake("/nonexistent/dir", (1, 2), args=("--chdir", "/nonexistent/dir")),
    "no_such_user": Mistake("no-such-user-here", (1, 2), args=("-u", "no-such-user-here")),
    "no_such_group": Mistake("no-such-group-here", (1, 2), args=("-g", "no-such-group-here")),
    "unwritable_pidfile": Mistake("/nonexistent/dir", 1, args=("-p", "/nonexistent/dir/pid"), reference=WORDY),
    "unwritable_error_log": Mistake("/nonexistent/dir", 1, args=("--error-logfile", "/nonexistent/dir/log")),
    "unwritable_access_log": Mistake(
        "/nonexistent/dir", 1, args=("--access-logfile", "/nonexistent/dir/log"), reference=WORDY
    ),
    "no_such_logconfig": Mistake("/nonexistent/log.ini", 1, args=("--log-config", "/nonexistent/log.ini")),
    "no_such_logconfig_json": Mistake(
        "/nonexistent/log.json", 1, args=("--log-config-json", "/nonexistent/log.json"), reference="it is ignored"
    ),
    "no_such_extra_file": Mistake("/nonexistent/x", (1, 2), args=("--reload", "--reload-extra-file", "/nonexistent/x")),
    "bad_env": Mistake("env", (1, 2), args=("-e", "NOVALUE"), reference="it is taken as an empty one"),
    "conf_syntax": Mistake(r"conf\.py", 1, conf="workers = (\n", frames=True),
    "conf_raises": Mistake("conf marker", 1, conf="raise RuntimeError('conf marker')\n", frames=True),
    "conf_import": Mistake("no_such_module", 1, conf="import no_such_module\n", frames=True),
    "conf_value": Mistake("workers", 1, conf="workers = 'many'\n"),
    "conf_type": Mistake("reload", 1, conf="reload = 'perhaps'\n"),
    "conf_hook": Mistake("post_fork", 1, conf="def post_fork(worker):\n    pass\n"),
    "conf_logconfig_dict": Mistake("log", 1, conf="logconfig_dict = {'version': 7}\n"),
    "env_arguments": Mistake("--no-such-flag", 2, env={"GUNICORN_CMD_ARGS": "--no-such-flag"}),
    "env_workers": Mistake("WEB_CONCURRENCY|workers", 1, env={"WEB_CONCURRENCY": "many"}, reference=WORDY),
    "no_application": Mistake("No application module specified", (1, 2), app=""),
    "no_module": Mistake("no_such_module", (3, 4), app="no_such_module:application", frames=True),
    "no_attribute": Mistake("nothing", 4, app="mine:nothing"),
    "not_callable": Mistake("callable", 4, app="mine:five", files={"mine.py": "five = 5\n"}),
    "app_grammar": Mistake("[Pp]arse", 4, app="mine:application("),
    "app_syntax": Mistake("SyntaxError", 3, files={"mine.py": "def application(:\n"}, frames=True),
    "app_raises": Mistake("app marker", 3, files={"mine.py": "raise ValueError('app marker')\n"}, frames=True),
    "app_raises_preloaded": Mistake(
        "app marker", (1, 3), args=("--preload",), files={"mine.py": "raise ValueError('app marker')\n"}, frames=True
    ),
}


def prepared(mistake: Mistake) -> Site:
    files = {"mine.py": module("fine"), **mistake.files}
    expects = NO_BOOT if mistake.frames else None
    return Site(
        mistake.conf, app=mistake.app, files=files, env=mistake.env, extra=mistake.args, wait=False, expects=expects
    )


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_at_the_start(case: str) -> None:
    mistake = MISTAKES[case]
    if REFERENCE and mistake.reference:
        pytest.skip(f"the reference server: {mistake.reference}")
    with prepared(mistake) as server:
        inside = set(os.listdir(server.directory))
        status = server.wait_exit()
        text = server.log.text + server.out.text
        assert re.search(mistake.says, text) or (REFERENCE and "Error" in text), text
        assert status == mistake.code or (isinstance(mistake.code, tuple) and status in mistake.code), (status, text)
        if not mistake.frames and not REFERENCE:
            assert "Traceback" not in text, text
            assert '  File "' not in text, text
            one_sentence(text, mistake)
        assert not server.leftovers()
        left = {name for name in os.listdir(server.directory) if not name.endswith(".imported")}
        assert left <= inside | {"__pycache__"}


def one_sentence(text: str, mistake: Mistake) -> None:
    """The reason is given once, by a line that has words and no Python representation."""
    lines = [line for line in text.splitlines() if re.search(mistake.says, line)]
    assert 1 <= len(lines) <= 2, text
    assert not re.search(r"<(class|function|module|bound)", text), text
    assert any(len(line.split()) >= 4 for line in lines), text


@pytest.mark.timeout(60)
@pytest.mark.parametrize("transport", ["tcp", "unix"])
def test_an_address_in_use(transport: str, tmp_path: Path) -> None:
    path, pidfile = tmp_path / "s", tmp_path / "pid"
    with socket.socket(socket.AF_UNIX if transport == "unix" else socket.AF_INET) as taken:
        if transport == "unix":
            path.mkdir()  # what cannot be replaced
            address = f"unix:{path}"
        else:
            taken.bind(("127.0.0.1", free_port()))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
        config = f"bind = {address!r}\npidfile = '{pidfile}'\n"
        with Site(config, app="mine:application", files={"mine.py": module("x")}, wait=False) as server:
            assert server.wait_exit() == 1
            text = server.log.text
            assert str(path) in text if transport == "unix" else "in use" in text
            assert "Traceback" not in text or REFERENCE
            assert REFERENCE or not pidfile.exists()
            assert not server.leftovers()


def test_a_pidfile_of_a_running_server(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    pidfile.write_text(f"{os.getpid()}\n")
    with Site(f"pidfile = '{pidfile}'\n", wait=False) as server:
        assert server.wait_exit() == 1
        assert f"Already running on PID {os.getpid()}" in server.log.text
        assert "Traceback" not in server.log.text or REFERENCE
    assert int(pidfile.read_text()) == os.getpid(), "it is the other server's"


def test_a_stale_pidfile_is_replaced(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    for stale in ("4194303\n", "\n", "nonsense\n"):
        pidfile.write_text(stale)
        if REFERENCE and stale == "nonsense\n":
            continue
        with Site(f"pidfile = '{pidfile}'\n") as server:
            assert int(pidfile.read_text()) == server.pid


@pytest.mark.parametrize("check", [False, True], ids=["start", "check_config"])
@pytest.mark.beyond_reference("it ignores them")
def test_a_setting_of_the_reference_that_is_not_there_is_refused_by_name(check: bool) -> None:
    extra = ("--check-config",) if check else ()
    with Site("dirty_apps = ['shop:jobs']\n", wait=False, extra=extra) as server:
        assert server.wait_exit() == 1
        assert "dirty_apps" in server.log.text
        assert "Traceback" not in server.log.text


@pytest.mark.beyond_reference("it ignores unknown names in silence")
def test_a_name_that_is_nearly_a_setting_is_told() -> None:
    with Site("worker = 2\nmax_request = 5\ndatabase_pool_size = 20\n_private = 1\n") as server:
        assert server.log.matching(r"\[WARNING\].*max_request\b.*max_requests")
        assert "database_pool_size" not in server.log.text
        assert "_private" not in server.log.text


@pytest.mark.parametrize("good", [True, False])
def test_check_config(good: bool) -> None:
    files = {"mine.py": module("x") if good else "raise ValueError('app marker')\n"}
    with Site("", app="mine:application", files=files, extra=("--check-config",), wait=False) as server:
        assert server.wait_exit() == (0 if good else 1)
        assert ("app marker" in server.log.text + server.out.text) is not good
        assert "Listening" not in server.log.text


UNTOUCHED = [case for case, mistake in MISTAKES.items() if mistake.conf or (mistake.files and not mistake.args)]


@pytest.mark.beyond_reference("a mistake at a reload ends the service there")
@pytest.mark.parametrize("case", UNTOUCHED)
def test_the_same_mistake_at_a_reload_leaves_the_service_as_it_is(case: str) -> None:
    mistake = MISTAKES[case]
    attribute = mistake.app.partition(":")[2]
    expects = NO_BOOT if mistake.frames else None
    with Site("", app="mine:application", files={"mine.py": module("fine")}, expects=expects) as server:
        before, lines = server.worker_pids(), len(server.log.lines)
        if mistake.conf:
            server.configure(mistake.conf)
        else:
            text = mistake.files["mine.py"]
            server.write("mine.py", text.replace(attribute, "application") if attribute != "application" else text)
        server.signal(signal.SIGHUP)
        until(lambda: any(re.search(mistake.says, line) for line in server.log.lines[lines:]), "the log says why")
        until(lambda: server.worker_pids() == before, "the worker is the same")
        assert server.get("/").body == b"fine"
