"""Executing a configuration file, and what its names mean."""

from __future__ import annotations

import os
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn.config.config_file import Location, find_default, read, undone_on_failure
from tricorn.config.resolve import Layer
from tricorn.config.unavailable import judge
from tricorn.errors import ConfigError


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(text: str, name: str = "conf.py") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def execute(text: str) -> Layer:
    write(text)
    return read(Location.parse("conf.py"), os.getcwd())


def values(layer: Layer) -> dict[str, object]:
    return {name: raw.value for name, raw in layer.values.items()}


def failure(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught, undone_on_failure(Location.parse("conf.py")):
        execute(text)
    return caught.value


class TestWhatIsRead:
    def test_names_that_are_settings(self) -> None:
        layer = execute("import os\nworkers = 2 + 1\ndef on_exit(server): pass\n")
        assert values(layer)["workers"] == 3
        assert set(layer.values) == {"workers", "on_exit"}
        assert layer.warnings == ()

    def test_each_knows_its_line(self) -> None:
        layer = execute(
            "workers = 1\nif True:\n    workers = 2\nbind, backlog = 'x', 5\ndef on_exit(server):\n    workers = 9\n"
            "threads: int = 3\nfrom os import sep as root_path\ntry:\n    timeout = 1\nfinally:\n    keepalive = 1\n"
        )
        assert {name: raw.origin for name, raw in layer.values.items()} == {
            "workers": "conf.py:3",
            "bind": "conf.py:4",
            "backlog": "conf.py:4",
            "on_exit": "conf.py:5",
            "threads": "conf.py:7",
            "root_path": "conf.py:8",
            "timeout": "conf.py:10",
            "keepalive": "conf.py:12",
        }

    def test_a_value_whose_line_is_unknown_names_the_file(self) -> None:
        layer = execute("globals()['workers'] = 2\n")
        assert layer.values["workers"].origin == "conf.py"

    def test_none_is_what_a_line_that_is_not_written_means(self) -> None:
        layer = execute("bind = None\nloglevel = None\npreload_app = None\npidfile = None\nuser = None\n")
        assert set(layer.values) == {"pidfile", "user"}

    def test_none_where_a_number_is_wanted_is_left_for_a_complaint(self) -> None:
        assert values(execute("import os\nworkers = os.environ.get('NO_SUCH_VARIABLE')\n")) == {"workers": None}

    def test_a_text_in_raw_env_is_one_assignment(self) -> None:
        assert values(execute("raw_env = 'A=b c,d'\n")) == {"raw_env": ["A=b c,d"]}

    def test_config_means_nothing_in_the_file(self) -> None:
        assert values(execute("import configparser\nconfig = configparser.ConfigParser()\n")) == {}

    def test_what_other_names_mean_is_the_files_business(self) -> None:
        text = (
            "from os import environ as e\nimport multiprocessing\n_x = 1\nDEBUG = True\nhosts = []\nclass Worker: ...\n"
        )
        layer = execute(text + "def helper(x): ...\nlambda_ = lambda: 1\n")
        assert layer == Layer({})


class TestHowItIsExecuted:
    def test_its_module_is_gunicorns(self) -> None:
        layer = execute("proc_name = __name__\npidfile = __file__\nchdir = str(bool(__builtins__))\n")
        assert values(layer) == {"proc_name": "__config__", "pidfile": str(Path("conf.py").resolve()), "chdir": "True"}

    def test_its_module_can_be_found_for_those_who_look(self) -> None:
        execute(
            "from dataclasses import dataclass\n@dataclass\nclass Pool:\n    size: 'int' = 1\nworkers = Pool().size\n"
        )
        assert sys.modules["__config__"].__dict__["workers"] == 1

    def test_it_is_executed_anew_each_time(self) -> None:
        assert values(execute("workers = 1\n")) == {"workers": 1}
        assert values(execute("workers = 2\n")) == {"workers": 2}  # same size, same second
        assert values(execute("threads = 2\n")) == {"threads": 2}

    def test_nothing_is_cached_beside_it(self) -> None:
        execute("workers = 1\n")
        assert os.listdir(".") == ["conf.py"]

    def test_a_module_too(self) -> None:
        write("workers = 1\n", "settings_module.py")
        location = Location.parse("python:settings_module")
        assert values(read(location, os.getcwd())) == {"workers": 1}
        write("workers = 2\n", "settings_module.py")
        layer = read(location, os.getcwd())
        assert layer.values["workers"].value == 2
        assert layer.values["workers"].origin == "python:settings_module:1"

    def test_a_module_of_a_package(self) -> None:
        Path("package").mkdir()
        write("from .other import workers\n", "package/conf.py")
        write("workers = 4\n", "package/other.py")
        assert values(read(Location.parse("python:package.conf"), os.getcwd())) == {"workers": 4}

    @pytest.mark.parametrize("text", ["conf.py", "./conf.py", "file:conf.py", "{}/conf.py", "file:{}/conf.py"])
    def test_ways_to_name_a_file(self, text: str) -> None:
        write("workers = 2\n")
        text = text.format(os.getcwd())
        layer = read(Location.parse(text), os.getcwd())
        assert layer.values["workers"].origin == text.removeprefix("file:") + ":1"

    def test_relative_paths_begin_at_the_directory_that_is_given(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        write("workers = 2\n", "sub/conf.py")
        assert values(read(Location.parse("conf.py"), str(tmp_path / "sub"))) == {"workers": 2}

    def test_another_extension_is_executed_with_a_warning(self) -> None:
        write("workers = 2\n", "server.conf")
        layer = read(Location.parse("server.conf"), os.getcwd())
        assert values(layer) == {"workers": 2}
        assert layer.warnings == ("The configuration file 'server.conf' should have the extension .py.",)

    def test_a_compiled_file(self) -> None:
        write("workers = 2\n")
        py_compile.compile("conf.py", "conf.pyc")
        assert values(read(Location.parse("conf.pyc"), os.getcwd())) == {"workers": 2}


FAILURES = [
    ("x = 1\ny = 1/0\n", "conf.py:2: ZeroDivisionError: division by zero"),
    ("def f():\n    raise KeyError('k')\n\nf()\n", "conf.py:2: KeyError: 'k'"),
    ("import os\nworkers = (\n", "conf.py:2: SyntaxError: '(' was never closed"),
    ("import no_such_module_at_all\n", "conf.py:1: ModuleNotFoundError: No module named 'no_such_module_at_all'"),
    ("raise SystemExit('no')\n", "conf.py:1: it calls exit('no')"),
    ("raise Exception\n", "conf.py:1: Exception"),
]


class TestFailures:
    @pytest.mark.parametrize(("text", "words"), FAILURES)
    def test_they_are_told_in_one_sentence_with_file_and_line(self, text: str, words: str) -> None:
        assert str(failure(text)) == f"Failed to read config file: {words}"

    def test_the_details_are_the_files_own_frames(self) -> None:
        details = failure("def f():\n    return 1/0\n\nf()\n").details
        assert details.count("  File ") == 2
        assert "in f\n" in details
        assert "config_file" not in details

    def test_the_details_of_a_syntax_error_show_the_line(self) -> None:
        assert "    workers = = 2\n" in failure("workers = = 2\n").details

    def test_the_line_is_the_files_own_when_a_module_of_it_fails(self) -> None:
        write("def check():\n    raise ValueError('bad')\n", "helper_module.py")
        assert str(failure("import helper_module\n\nhelper_module.check()\n")).endswith("conf.py:3: ValueError: bad")

    def test_config_file_that_is_missing(self) -> None:
        with pytest.raises(ConfigError, match=r"The configuration file 'nowhere\.py' doesn't exist"):
            read(Location.parse("nowhere.py"), os.getcwd())

    def test_hypercorns_toml(self) -> None:
        write("bind = 'a'\n", "hypercorn.toml")
        with pytest.raises(
            ConfigError, match=r"Cannot read 'hypercorn\.toml': configuration files are Python, not TOML"
        ):
            read(Location.parse("hypercorn.toml"), os.getcwd())

    def test_config_file_that_is_a_directory(self) -> None:
        Path("dir.py").mkdir()
        with pytest.raises(ConfigError, match=r"dir\.py: IsADirectoryError"):
            read(Location.parse("dir.py"), os.getcwd())

    def test_config_module_that_is_missing(self) -> None:
        for name in ("no_such_module_at_all", "no_such_module_at_all.conf", "os.nothing"):
            with pytest.raises(ConfigError, match=f"python:{name}: ModuleNotFoundError: "):
                read(Location.parse(f"python:{name}"), os.getcwd())

    @pytest.mark.parametrize("first", ["", "workers = 1\n"])
    def test_they_leave_no_traces(self, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CONFIG_FILE_TEST", "before")
        if first:
            execute(first)
        module = sys.modules.get("__config__")
        path, environ = sys.path.copy(), os.environ.copy()
        failure(
            "import os, sys\nsys.path.append('x')\nos.environ['CONFIG_FILE_TEST'] = 'after'\n"
            "os.environ['CONFIG_FILE_TEST_2'] = 'new'\n1/0\n"
        )
        assert sys.modules.get("__config__") is module
        assert sys.path == path
        assert os.environ == environ

    def test_an_intact_file_may_leave_some(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CONFIG_FILE_TEST", "before")
        execute("import os, sys\nsys.path.append('x')\nos.environ['CONFIG_FILE_TEST'] = 'after'\n")
        assert sys.path[-1] == "x"
        assert os.environ["CONFIG_FILE_TEST"] == "after"

    def test_ctrl_c_is_no_mistake_of_the_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "__config__", raising=False)  # which another file of tests may have left
        with pytest.raises(KeyboardInterrupt), undone_on_failure(None):
            execute("raise KeyboardInterrupt\n")
        assert "__config__" not in sys.modules


NEAR_MISSES = [
    ("worker = 4", "workers"),
    ("log_level = 'debug'", "loglevel"),
    ("keep_alive = 5", "keepalive"),
    ("preload = True", "preload_app"),
    ("access_logfile = '-'", "accesslog"),
    ("log_file = 'x'", "errorlog"),
    ("max_request = 10", "max_requests"),
    ("gracefull_timeout = 10", "graceful_timeout"),
    ("tiemout = 10", "timeout"),
    ("def pre_requests(worker, req): ...", "pre_request"),
    ("def onstarting(server): ...", "on_starting"),
]
STRANGERS = [
    "app = 'x'",
    "name = 'x'",
    "env = {}",
    "port = 8000",
    "host = 'h'",
    "cores = 4",
    "worker = object()",
    "def worker(x): ...",
    "def setup(): ...",
    "import threading as thread",
    "class Workers: ...",
    "TIMEOUT_ = 3",
    "input = 3",
]


class TestNamesThatAreNoSettings:
    @pytest.mark.parametrize(("line", "meant"), NEAR_MISSES)
    def test_a_near_miss_is_worth_a_warning(self, line: str, meant: str) -> None:
        name = line.removeprefix("def ").split("(")[0].split(" ")[0]
        (warning,) = execute(f"\n{line}\n").warnings
        assert warning == f"conf.py:2: {name} is not a setting and was ignored; did you mean {meant}?"

    @pytest.mark.parametrize("line", STRANGERS)
    def test_anything_else_is_not(self, line: str) -> None:
        assert execute(line + "\n") == Layer({})

    def test_what_is_not_available_is_refused(self) -> None:
        (asked,) = execute("workers = 2\ndirty_apps = ['shop:jobs']\n").asked
        sentence = "conf.py:2: gunicorn's setting dirty_apps is not available in this version of tricorn."
        assert (asked.name, asked.sentence) == ("dirty_apps", sentence)
        with pytest.raises(ConfigError):
            judge([asked], "refuse")

    def test_a_lazy_object_is_not_woken(self) -> None:
        """Django's settings are made when they are first asked for anything, their class included."""
        lazy = (
            "class Lazy:\n"
            "    def __getattribute__(self, name): raise RuntimeError(name)\n"
            "    __class__ = property(lambda self: 1 / 0)\n"
            "settings = worker = Lazy()\n"
        )
        assert execute(lazy) == Layer({})

    @pytest.mark.parametrize(
        "line",
        ["dirty_apps = []", "dirty_workers = 2"],
    )
    def test_unless_it_asks_for_nothing(self, line: str) -> None:
        assert execute(line + "\n") == Layer({})


class TestTheFileThatIsThere:
    def test_no_config_file_is_found(self, tmp_path: Path) -> None:
        assert find_default(str(tmp_path)) == (None, ())

    @pytest.mark.parametrize("name", ["gunicorn.conf.py", "tricorn.conf.py"])
    def test_one_config_file_is_found(self, name: str, tmp_path: Path) -> None:
        write("", name)
        assert find_default(str(tmp_path)) == (Location("./" + name, path=name), ())

    def test_tricorns_wins(self, tmp_path: Path) -> None:
        for name in ("gunicorn.conf.py", "tricorn.conf.py"):
            write("", name)
        location, warnings = find_default(str(tmp_path))
        assert location == Location("./tricorn.conf.py", path="tricorn.conf.py")
        assert warnings == ("Both ./tricorn.conf.py and ./gunicorn.conf.py exist; using tricorn.conf.py.",)
