"""Where configuration comes from, observed on real processes: which source wins, what is said, what is left alone."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.harness import APPS, Server, until
from tests.harness.server import run

OURS = "it has fewer sources, and does not tell where a value comes from"

toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="needs a parser for TOML")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory to start in, with applications that load and that do not."""
    (tmp_path / "fine.py").write_text("def application(environ, start_response): ...\n")
    (tmp_path / "broken.py").write_text("import no_such_module_at_all\n")
    return tmp_path


def place(sources: Mapping[str, str], directory: Path) -> tuple[list[str], dict[str, str]]:
    """Puts texts where they belong: a file of that name, `$VARIABLE`, or `argv`."""
    argv: list[str] = []
    environ = {}
    for where, text in sources.items():
        if where.startswith("$"):
            environ[where[1:]] = text
        elif where == "argv":
            argv = text.split()
        else:
            path = directory / where
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return argv, environ


def printed(site: Path, sources: Mapping[str, str], app: str = "fine") -> dict[str, str]:
    """What --print-config says: by name, `value  (origin)`."""
    argv, environ = place(sources, site)
    done = run(*argv, "--print-config", *([app] if app else []), cwd=site, env=environ)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if " = " in line]
    return {name.strip(): rest for name, rest in (line.split(" = ", 1) for line in lines)}


PYPROJECT = "[tool.tricorn] in ./pyproject.toml"
CHAIN = [
    ("$WEB_CONCURRENCY", "1", "WEB_CONCURRENCY"),
    ("pyproject.toml", "[tool.tricorn]\nworkers = 2\n", PYPROJECT),
    ("gunicorn.conf.py", "workers = 3\n", "./gunicorn.conf.py:1"),
    ("$TRICORN_WORKERS", "4", "TRICORN_WORKERS"),
    ("$GUNICORN_CMD_ARGS", "-w 5", "--workers in GUNICORN_CMD_ARGS"),
    ("$TRICORN_CMD_ARGS", "-w 6", "--workers in TRICORN_CMD_ARGS"),
    ("argv", "-w 7", "--workers"),
]


@toml
@pytest.mark.beyond_reference(OURS)
@pytest.mark.parametrize("strongest", range(len(CHAIN)), ids=[source for source, *_ in CHAIN])
def test_what_stands_further_down_wins(strongest: int, site: Path) -> None:
    shown = printed(site, {source: text for source, text, _ in CHAIN[: strongest + 1]})
    assert shown["workers"] == f"{strongest + 1}  ({CHAIN[strongest][2]})"


ORIGINS = {
    "a file in the directory": ({"gunicorn.conf.py": "\nthreads = 3\n"}, "./gunicorn.conf.py:2"),
    "tricorn's file": (
        {"gunicorn.conf.py": "threads = 2\n", "tricorn.conf.py": "threads = 3\n"},
        "./tricorn.conf.py:1",
    ),
    "a path": ({"argv": "-c deploy/conf.py", "deploy/conf.py": "threads = 3\n"}, "deploy/conf.py:1"),
    "file:PATH": ({"argv": "--config file:deploy/conf.py", "deploy/conf.py": "threads = 3\n"}, "deploy/conf.py:1"),
    "python:MODULE": (
        {"argv": "-c python:deploy.conf", "deploy/conf.py": "threads = 3\n", "deploy/__init__.py": ""},
        "python:deploy.conf:1",
    ),
    "another extension": ({"argv": "-c server.conf", "server.conf": "threads = 3\n"}, "server.conf:1"),
    "a path in GUNICORN_CMD_ARGS": (
        {"$GUNICORN_CMD_ARGS": "-c a.py", "a.py": "threads = 3\n", "gunicorn.conf.py": "threads = 2\n"},
        "a.py:1",
    ),
    "a path in a variable": ({"$TRICORN_CONFIG": "a.py", "a.py": "threads = 3\n"}, "a.py:1"),
    "the command line's path before others": (
        {"argv": "-c a.py", "$GUNICORN_CMD_ARGS": "-c b.py", "a.py": "threads = 3\n", "b.py": "threads = 2\n"},
        "a.py:1",
    ),
    "the directory of the start, not that of --chdir": (
        {"argv": "--chdir sub", "gunicorn.conf.py": "threads = 3\n", "sub/gunicorn.conf.py": "threads = 2\n"},
        "./gunicorn.conf.py:1",
    ),
}


@pytest.mark.beyond_reference(OURS)
@pytest.mark.parametrize(("sources", "origin"), ORIGINS.values(), ids=ORIGINS.keys())
def test_which_file_is_read(sources: Mapping[str, str], origin: str, site: Path) -> None:
    if "--chdir" in sources.get("argv", ""):
        (site / "sub").mkdir()
        (site / "fine.py").rename(site / "sub" / "fine.py")
    assert printed(site, sources)["threads"] == f"3  ({origin})"


@pytest.mark.beyond_reference(OURS)
@pytest.mark.parametrize(
    ("sources", "origin"),
    [
        ({"gunicorn.conf.py": "wsgi_app = 'fine'\n"}, "./gunicorn.conf.py:1"),
        ({"$TRICORN_WSGI_APP": "fine"}, "TRICORN_WSGI_APP"),
        ({"$GUNICORN_CMD_ARGS": "fine"}, "GUNICORN_CMD_ARGS"),
    ],
)
def test_where_the_application_may_be_named(sources: Mapping[str, str], origin: str, site: Path) -> None:
    assert printed(site, sources, app="")["wsgi_app"] == f"fine  ({origin})"


def test_print_config_has_a_line_for_each_setting_and_loads_the_application(site: Path) -> None:
    place({"gunicorn.conf.py": "def when_ready(server): ...\n"}, site)
    done = run("--print-config", "fine", cwd=site)
    assert done.returncode == 0
    names = [line.split(" = ")[0].rstrip() for line in done.stdout.splitlines() if " = " in line]
    assert len(names) == len(set(names)) > 80
    assert re.search(r"^workers +=\s1\b", done.stdout, re.MULTILINE)
    assert re.search(r"^when_ready += <when_ready\(\)>", done.stdout, re.MULTILINE)
    done = run("--print-config", "broken", cwd=site)
    assert done.returncode == 1
    assert "Error while loading the application:" in done.stderr
    assert "no_such_module_at_all" in done.stderr


@pytest.mark.beyond_reference("it prints them")
def test_print_config_keeps_secrets(site: Path) -> None:
    place({"gunicorn.conf.py": "raw_env = ['PASSWORD=hunter2']\n"}, site)
    done = run("--print-config", "fine", cwd=site)
    assert "PASSWORD=***" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.parametrize(("app", "status"), [("fine", 0), ("fine:nothing", 1), ("broken", 1), ("nowhere", 1)])
def test_check_config(app: str, status: int, site: Path) -> None:
    done = run("--check-config", app, cwd=site)
    assert done.returncode == status
    assert ("Error while loading the application:" in done.stderr) == bool(status)


BAD_INPUT = {
    "a value": ({"argv": "-w 0"}, 1, "Invalid value for workers: 0 (from --workers): expected at least 1."),
    "a text for a number": ({"argv": "-w x"}, 2, "argument -w/--workers: expected a whole number or auto, got 'x'"),
    "a misspelt flag": ({"argv": "--tiemout 3"}, 2, "unrecognized arguments: --tiemout; did you mean --timeout?"),
    "a value in the file": (
        {"gunicorn.conf.py": "\nworkers = 'many'\n"},
        1,
        "Invalid value for workers: many (from ./gunicorn.conf.py:2): expected a whole number or auto.",
    ),
    "a value in a variable": (
        {"$TRICORN_TIMEOUT": "soon"},
        1,
        "Invalid value for timeout: soon (from TRICORN_TIMEOUT): expected a number of seconds.",
    ),
    "a value in GUNICORN_CMD_ARGS": (
        {"$GUNICORN_CMD_ARGS": "--header-map foo"},
        1,
        "Invalid value for header_map: foo (from --header-map in GUNICORN_CMD_ARGS): expected one of drop, refuse, ",
    ),
    "a quote that is not closed": (
        {"$GUNICORN_CMD_ARGS": "-n 'x"},
        2,
        "in the environment variable GUNICORN_CMD_ARGS: No closing quotation",
    ),
    "a syntax error": (
        {"gunicorn.conf.py": "x = 1\nworkers = = 2\n"},
        1,
        "Failed to read config file: ./gunicorn.conf.py:2: SyntaxError: ",
    ),
    "an exception": (
        {"gunicorn.conf.py": "import os\nbind = os.environ['NO_SUCH_VARIABLE']\n"},
        1,
        "Failed to read config file: ./gunicorn.conf.py:2: KeyError: 'NO_SUCH_VARIABLE'",
    ),
    "no such file": ({"argv": "-c nowhere.py"}, 1, "The configuration file 'nowhere.py' doesn't exist."),
    "no such module": ({"argv": "-c python:nowhere"}, 1, "python:nowhere: ModuleNotFoundError: No module named 'nowhe"),
    "a hook of other arguments": (
        {"gunicorn.conf.py": "def pre_fork(server): ...\n"},
        1,
        "expected a function of 2 arguments.",
    ),
    "a user who does not exist": (
        {"argv": "-u no-user-of-that-name"},
        1,
        "Invalid value for user: no-user-of-that-name (from --user): this machine has no user of that name.",
    ),
    "a directory that does not exist": ({"argv": "--chdir nowhere"}, 1, "Invalid value for chdir: nowhere (from --chd"),
    "what is not available": (
        {"argv": "--dirty-app shop:jobs"},
        2,
        "gunicorn's setting dirty_apps is not available in this version",
    ),
    "what is not available, in the file": (
        {"gunicorn.conf.py": "dirty_apps = ['shop:jobs']\n"},
        1,
        "./gunicorn.conf.py:1: gunicorn's setting dirty_apps is not available in this version of tricorn.",
    ),
    "an unknown key in pyproject.toml": pytest.param(
        {"pyproject.toml": "[tool.tricorn]\nworker = 2\n"},
        1,
        f"{PYPROJECT}: worker is not a setting; did you mean workers?",
        marks=toml,
    ),
}


@pytest.mark.beyond_reference("it says less, and leaves a traceback")
@pytest.mark.parametrize(("sources", "status", "sentence"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_is_explained_in_a_sentence(
    sources: Mapping[str, str], status: int, sentence: str, site: Path
) -> None:
    argv, environ = place(sources, site)
    before = sorted(path.name for path in site.iterdir())
    done = run(*argv, "fine", cwd=site, env=environ)
    assert sentence in done.stderr
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(path.name for path in site.iterdir()) == before, "nothing is left behind"


WARNINGS = {
    "an empty variable": (
        {"$WEB_CONCURRENCY": ""},
        "The environment variable WEB_CONCURRENCY is empty and was ignored.",
    ),
    "a misspelt variable": (
        {"$TRICORN_WORKRS": "2"},
        "Unknown environment variable TRICORN_WORKRS; did you mean TRICORN_WORKERS?",
    ),
    "a misspelt name": (
        {"gunicorn.conf.py": "import os\nworkes = 2\n"},
        "./gunicorn.conf.py:2: workes is not a setting and was ignored; did you mean workers?",
    ),
    "a flag's name": (
        {"gunicorn.conf.py": "keep_alive = 2\n"},
        "./gunicorn.conf.py:1: keep_alive is not a setting and was ignored; did you mean keepalive?",
    ),
    "two files": (
        {"gunicorn.conf.py": "", "tricorn.conf.py": ""},
        "Both ./tricorn.conf.py and ./gunicorn.conf.py exist; using tricorn.conf.py.",
    ),
    "another extension": (
        {"argv": "-c server.conf", "server.conf": ""},
        "The configuration file 'server.conf' should have the extension .py.",
    ),
}


@pytest.mark.beyond_reference("it says nothing, or fails")
@pytest.mark.parametrize(("sources", "warning"), WARNINGS.values(), ids=WARNINGS.keys())
def test_what_is_likely_a_mistake_is_worth_a_warning(sources: Mapping[str, str], warning: str, site: Path) -> None:
    argv, environ = place(sources, site)
    done = run(*argv, "--check-config", "fine", cwd=site, env=environ)
    assert (done.returncode, done.stderr) == (0, f"Warning: {warning}\n")


def test_other_names_of_a_file_are_its_own(site: Path) -> None:
    text = (
        "import multiprocessing, os\nfrom os import environ as env\n_x = 1\nDEBUG = True\napp = 'x'\nname = 'x'\n"
        "def helper(x): ...\nclass Pool: ...\nkeyfile = certfile = None\nworkers = 1\n"
    )
    place({"gunicorn.conf.py": text}, site)
    done = run("--check-config", "fine", cwd=site)
    assert (done.returncode, done.stderr) == (0, "")


# On servers


def told(server: Server) -> Any:
    return server.get("/").json()["env"]["TRICORN_A"]


SERVED = {
    "the file in the directory": {"gunicorn.conf.py": "raw_env = ['TRICORN_A=told']\n"},
    "GUNICORN_CMD_ARGS": {"$GUNICORN_CMD_ARGS": "--env TRICORN_A=told"},
    "the command line": {"argv": "-e TRICORN_A=told", "gunicorn.conf.py": "raw_env = ['TRICORN_A=file']\n"},
    "a module": {"argv": "-c python:conf", "conf.py": "import os\nraw_env = [f'TRICORN_A={\"told\"}']\n"},
}
SERVED_BY_US = {
    "pyproject.toml": pytest.param(
        {"pyproject.toml": "[tool.tricorn]\nraw_env = { TRICORN_A = 'told' }\n"}, marks=toml
    ),
    "TRICORN_RAW_ENV": {"$TRICORN_RAW_ENV": "TRICORN_A=told"},
    "TRICORN_CMD_ARGS": {"$TRICORN_CMD_ARGS": "-e TRICORN_A=told", "$GUNICORN_CMD_ARGS": "-e TRICORN_A=other"},
}


def served(sources: Mapping[str, str]) -> None:
    server = Server("settings:application")
    argv, environ = place(sources, server.directory)
    server.argv[-1:] = [*argv, server.argv[-1]]
    server._env.update(environ)
    with server:
        assert told(server) == "told"


@pytest.mark.parametrize("sources", SERVED.values(), ids=SERVED.keys())
def test_a_server_has_what_it_is_told(sources: Mapping[str, str]) -> None:
    served(sources)


@pytest.mark.beyond_reference(OURS)
@pytest.mark.parametrize("sources", SERVED_BY_US.values(), ids=SERVED_BY_US.keys())
def test_a_server_has_what_it_is_told_in_our_ways(sources: Mapping[str, str]) -> None:
    served(sources)


@pytest.mark.beyond_reference("a file that fails ends it")
def test_a_reload_executes_the_file_again_and_survives_it() -> None:
    server = Server("settings:application", extra=["-c", "conf.py"], chdir=APPS)
    config = server.directory / "conf.py"
    config.write_text("raw_env = ['TRICORN_A=one']\n")
    with server:
        assert told(server) == "one"
        config.write_text("raw_env = ['TRICORN_A=two']\n")
        server.signal(signal.SIGHUP)
        until(lambda: told(server) == "two", "the new configuration is in force")
        config.write_text("raw_env = ['TRICORN_A=three']\n1/0\n")
        server.signal(signal.SIGHUP)
        server.log.wait(r"conf\.py:2: ZeroDivisionError: division by zero")
        assert told(server) == "two"
        config.write_text("raw_env = ['TRICORN_A=four']\n")
        server.signal(signal.SIGHUP)
        until(lambda: told(server) == "four", "the mended configuration is in force")


@pytest.mark.beyond_reference(OURS)
def test_warnings_stand_in_the_log() -> None:
    with Server(env={"WEB_CONCURRENCY": ""}) as server:
        assert server.log.matching(r"\[WARNING\] The environment variable WEB_CONCURRENCY is empty and was ignored\.")


@pytest.mark.beyond_reference("a flag of ours")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_printed(shell: str) -> None:
    done = run("--completions", shell)
    assert done.returncode == 0
    assert "graceful-timeout" in done.stdout
    assert done.stderr == ""
