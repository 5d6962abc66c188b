"""All sources together: which wins, what is looked up where, and that loading twice is loading twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from tricorn.config.load import Loaded, Sources, load
from tricorn.errors import ConfigError

toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="needs a parser for TOML")


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setitem(sys.modules, "__config__", SimpleNamespace())


def sources(argv: str = "app:app", environ: Mapping[str, str] | None = None, cwd: str | None = None) -> Sources:
    return Sources(tuple(argv.split()), environ or {}, cwd or os.getcwd())


def loaded(argv: str = "app:app", environ: Mapping[str, str] | None = None) -> Loaded:
    return load(sources(argv, environ))


PYPROJECT = "[tool.tricorn] in ./pyproject.toml"
# Weakest first: what is written where, the number of workers it asks for, and the origin that is told.
CHAIN = [
    ("env WEB_CONCURRENCY", "1", "WEB_CONCURRENCY"),
    ("env GRANIAN_WORKERS", "2", "GRANIAN_WORKERS"),
    ("env UVICORN_WORKERS", "3", "UVICORN_WORKERS"),
    ("file pyproject.toml", "[tool.tricorn]\nworkers = 4\n", PYPROJECT),
    ("file gunicorn.conf.py", "workers = 5\n", "./gunicorn.conf.py:1"),
    ("env TRICORN_WORKERS", "6", "TRICORN_WORKERS"),
    ("env GUNICORN_CMD_ARGS", "--workers 7", "--workers in GUNICORN_CMD_ARGS"),
    ("env TRICORN_CMD_ARGS", "-w 8", "--workers in TRICORN_CMD_ARGS"),
    ("argv", "-w 9", "--workers"),
]


@toml
@pytest.mark.parametrize("strongest", range(len(CHAIN)))
def test_config_chain_of_sources(strongest: int) -> None:
    environ, argv = {}, "app:app"
    for place, text, _ in CHAIN[: strongest + 1]:
        kind, _, name = place.partition(" ")
        if kind == "env":
            environ[name] = text
        elif kind == "file":
            Path(name).write_text(text)
        else:
            argv = f"{text} {argv}"
    config = loaded(argv, environ).config
    assert (config.workers, config.origin("workers")) == (strongest + 1, CHAIN[strongest][2])


FILE_CHAIN = [
    ("", {}, "./gunicorn.conf.py"),
    ("", {"TRICORN_CONFIG": "a.py"}, "a.py"),
    ("", {"TRICORN_CONFIG": "a.py", "GUNICORN_CMD_ARGS": "-c b.py"}, "b.py"),
    ("", {"GUNICORN_CMD_ARGS": "-c b.py", "TRICORN_CMD_ARGS": "-c a.py"}, "a.py"),
    ("-c b.py", {"GUNICORN_CMD_ARGS": "-c a.py", "TRICORN_CMD_ARGS": "-c a.py", "TRICORN_CONFIG": "a.py"}, "b.py"),
]


@pytest.mark.parametrize(("argv", "environ", "file"), FILE_CHAIN)
def test_which_file_is_read(argv: str, environ: Mapping[str, str], file: str) -> None:
    for name in ("gunicorn.conf.py", "a.py", "b.py"):
        Path(name).write_text(f"proc_name = {name!r}\n")
    config = loaded(f"{argv} app:app", environ).config
    assert config.proc_name == file.removeprefix("./")
    assert config.config == file
    assert config.origin("proc_name") == f"{file}:1"


@toml
def test_pyproject_may_name_the_file() -> None:
    Path("pyproject.toml").write_text('[tool.tricorn]\nconfig = "deploy/conf.py"\n')
    Path("deploy").mkdir()
    Path("deploy/conf.py").write_text("workers = 5\n")
    assert loaded().config.workers == 5


@pytest.mark.parametrize("argv", [["-c", ""], ["-c", " "], ["-c", "python:"], ["-c", "file:"]])
def test_a_file_without_a_name(argv: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"\(from --config\): expected PATH, file:PATH or python:MODULE"):
        load(Sources((*argv, "app"), {}, os.getcwd()))


def test_an_application_is_needed() -> None:
    with pytest.raises(ConfigError, match="No application module specified"):
        loaded("")
    assert loaded("", {"TRICORN_WSGI_APP": "a:b"}).config.wsgi_app == "a:b"
    Path("gunicorn.conf.py").write_text("wsgi_app = 'c:d'\n")
    assert loaded("").config.wsgi_app == "c:d"
    assert loaded("e:f").config.wsgi_app == "e:f"


def test_a_file_may_import_what_is_beside_it() -> None:
    Path("load_beside.py").write_text("N = 3\n")
    Path("gunicorn.conf.py").write_text("from load_beside import N as workers\n")
    assert loaded().config.workers == 3


def test_warnings_of_all_sources() -> None:
    for name in ("gunicorn.conf.py", "tricorn.conf.py"):
        Path(name).write_text("worker = 2\n")
    warnings = loaded("app", {"WEB_CONCURRENCY": "", "TRICORN_WORKRS": "2"}).warnings
    assert warnings == (
        "Both ./tricorn.conf.py and ./gunicorn.conf.py exist; using tricorn.conf.py.",
        "The environment variable WEB_CONCURRENCY is empty and was ignored.",
        "./tricorn.conf.py:1: worker is not a setting and was ignored; did you mean workers?",
        "Unknown environment variable TRICORN_WORKRS; did you mean TRICORN_WORKERS?",
    )


class TestDirectories:
    def test_chdir_is_where_the_server_was_started(self, tmp_path: Path) -> None:
        config = loaded().config
        assert config.chdir == str(tmp_path)
        assert config.is_default("chdir")

    @pytest.mark.parametrize("chdir", ["sub", "./sub/", "{}/sub", "sub/../sub"])
    def test_chdir_is_absolute(self, chdir: str, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        assert loaded(f"--chdir {chdir.format(tmp_path)} app").config.chdir == str(tmp_path / "sub")

    def test_the_file_is_looked_for_where_the_server_was_started(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "gunicorn.conf.py").write_text("workers = 2\n")
        Path("gunicorn.conf.py").write_text("import os\nworkers = 3\nproc_name = os.getcwd()\n")
        config = loaded("--chdir sub app").config
        assert (config.workers, config.proc_name) == (3, str(tmp_path))

    def test_relative_files_of_settings_begin_at_chdir(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "logging.ini").write_text("")
        assert loaded("--chdir sub --log-config logging.ini app").config.logconfig == "logging.ini"
        with pytest.raises(ConfigError, match=r"logconfig: logging.ini \(from --log-config\): expected a file that"):
            loaded("--log-config logging.ini app")

    @pytest.mark.parametrize(
        "flags",
        ["--chdir nowhere", "--reload-extra-file nowhere", "--log-config-json nowhere", "--env-file nowhere"],
    )
    def test_missing_config_is_refused(self, flags: str) -> None:
        flag = flags.split()[0]
        with pytest.raises(ConfigError, match=rf"Invalid value for \w+: .*nowhere.* \(from {flag}\)"):
            loaded(f"{flags} app")

    def test_a_reload_comes_from_where_the_server_was_started(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        Path("gunicorn.conf.py").write_text("import os\nproc_name = os.getcwd()\n")
        start = sources("-c ./gunicorn.conf.py --chdir sub app")
        assert load(start).config.proc_name == str(tmp_path)
        os.chdir("sub")
        assert load(start).config.proc_name == str(tmp_path)
        assert Path.cwd() == tmp_path / "sub"

    def test_the_directory_may_be_gone(self, tmp_path: Path) -> None:
        (tmp_path / "gone").mkdir()
        start = sources(cwd=str(tmp_path / "gone"))
        (tmp_path / "gone").rmdir()
        with pytest.raises(ConfigError, match=r"no longer exists: .*gone': No such file or directory"):
            load(start)

    def test_a_link_to_a_release_is_followed_anew(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in ("1", "2"):
            (tmp_path / number).mkdir()
            (tmp_path / number / "gunicorn.conf.py").write_text(f"workers = {number}\n")
        current = tmp_path / "current"
        current.symlink_to("1")
        monkeypatch.chdir(current)
        monkeypatch.setenv("PWD", str(current))
        start = Sources.here(["app"])
        assert start.cwd == str(current)
        assert load(start).config.workers == 1
        current.unlink()
        current.symlink_to("2")
        assert load(start).config.workers == 2

    @pytest.mark.parametrize("pwd", ["", "relative", "/", "/no/such/directory"])
    def test_a_pwd_that_lies_is_not_believed(self, pwd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PWD", pwd)
        assert Sources.here([]).cwd == str(tmp_path.resolve())


class TestLoadingAgain:
    def test_reload_forgets_former_config(self) -> None:
        Path("gunicorn.conf.py").write_text("workers = 2\nthreads = 3\n")
        start = sources()
        first = load(start).config
        Path("gunicorn.conf.py").write_text("workers = 4\n")
        second = load(start).config
        assert (first.workers, first.threads) == (2, 3)
        assert (second.workers, second.threads) == (4, 1)

    @pytest.mark.parametrize("text", ["1/0\n", "workers = 0\n", "workers = (\n", "keyfile = 'x'\n", "chdir = 'no'\n"])
    def test_a_failure_leaves_no_traces(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        Path("gunicorn.conf.py").write_text("import os\nos.chdir('/')\n" + text)
        start = sources()
        os.chdir("sub")
        path, environ, modules = sys.path.copy(), os.environ.copy(), dict(sys.modules)
        with pytest.raises(ConfigError):
            load(start)
        assert Path.cwd() == tmp_path / "sub"
        assert (sys.path, os.environ) == (path, environ)
        assert sys.modules["__config__"] is modules["__config__"]


def test_processes_are_called_by_their_name_or_by_the_application() -> None:
    assert loaded("app:app").config.proc_name == "app:app"
    assert loaded("--name shop app:app").config.proc_name == "shop"
    assert loaded("app:app", {"TRICORN_DEFAULT_PROC_NAME": "other"}).config.proc_name == "other"
    assert loaded("app:app").config.is_default("proc_name")


def test_whoever_starts_it_serves() -> None:
    config = loaded().config
    assert (config.user, config.group, config.uid, config.gid) == (os.geteuid(), os.getegid()) * 2


def test_neither_the_core_nor_the_application_is_loaded() -> None:
    Path("load_app.py").write_text("1/0\n")
    code = (
        "import sys; from tricorn.config.load import Sources, load; load(Sources(('load_app',), {}, '.'));"
        "sys.exit('tricorn._core' in sys.modules or 'load_app' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
