"""`import gunicorn` in code that was written for it. Each test in a process of its own: imports are global."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tricorn import compat
from tricorn.compat.finder import OURS
from tricorn.compat.gunicorn import util

ROOT = Path(compat.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for top in ("gunicorn", "uvicorn", "uvicorn_worker", "aiohttp")
    for path in (ROOT / top).rglob("*.py")
)


def python(code: str, *path: Path) -> str:
    """What the code prints, with gunicorn not installed, or taken from `path`."""
    prelude = "import sys\n" + "".join(f"sys.path.insert(0, {str(entry)!r})\n" for entry in path)
    hide = "" if path else "sys.path[:] = [p for p in sys.path if not __import__('os').path.isdir(p + '/gunicorn')]\n"
    text = prelude + hide + "from tricorn.compat import install; install(); install()\n" + code
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=80, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_configuration_files_import() -> None:
    code = """
import gunicorn, gunicorn.glogging, gunicorn.util
from gunicorn import glogging, errors, util, arbiter
from gunicorn.glogging import Logger, SafeAtoms, CONFIG_DEFAULTS
from gunicorn.errors import ConfigError, AppImportError, HaltServer
from gunicorn.arbiter import Arbiter
from gunicorn.config import Config
from gunicorn.workers.base import Worker
import tricorn.log, tricorn.errors
assert Logger is glogging.Logger is tricorn.log.Logger
assert ConfigError is tricorn.errors.ConfigError
assert (Arbiter.WORKER_BOOT_ERROR, Arbiter.APP_LOAD_ERROR) == (3, 4)
assert not issubclass(HaltServer, Exception)
assert HaltServer("x", 4).exit_status == 4
assert gunicorn.version_info >= (20, 1)
gunicorn.SERVER_SOFTWARE = "mine"
print(gunicorn.__version__, sum(finder.__class__.__module__ == "tricorn.compat.finder" for finder in sys.meta_path))
"""
    assert python(code) == "27.0.1 1"


def test_gevent_websocket_is_there_for_its_worker_class_alone() -> None:
    """Libraries look for the package to learn whether there is a `wsgi.websocket`."""
    code = f"""
from importlib import import_module, util
assert util.find_spec("geventwebsocket") is None
from tricorn.workers import foreign
print(foreign.load("geventwebsocket.gunicorn.workers.GeventWebSocketWorker").alias)
for name in ("geventwebsocket", "geventwebsocket.exceptions", "geventwebsocket.gunicorn.workers"):
    module = import_module(name)
    assert module.__file__.startswith({str(ROOT)!r}) and all(hasattr(module, each) for each in module.__all__), name
"""
    assert python(code) == "gevent"


def test_every_module_is_there_under_its_name_and_has_what_it_says() -> None:
    code = f"""
import importlib
for name in {MODULES!r}:
    module = importlib.import_module(name)
    assert module.__name__ == name and module.__file__.startswith({str(ROOT)!r}), name
    for each in getattr(module, "__all__", ()):
        getattr(module, each)
"""
    python(code)


def test_what_is_always_ours_is_there() -> None:
    assert {*MODULES, "geventwebsocket.gunicorn.workers"} >= OURS


def test_classes_are_derived_from_pickled_and_inspected() -> None:
    code = """
import inspect, pickle
from gunicorn.errors import HaltServer
from gunicorn.http.wsgi import Response
from gunicorn.http import errors
assert pickle.loads(pickle.dumps(HaltServer)) is HaltServer
assert "class HaltServer" in inspect.getsource(HaltServer)
assert inspect.getmodule(HaltServer).__name__ == "gunicorn.errors"
class Mine(Response):
    def default_headers(self):
        return [line for line in super().default_headers() if not line.startswith("Server:")]
assert len(Mine().default_headers()) == 3
assert issubclass(errors.InvalidHeader, errors.ParseException)
"""
    python(code)


def test_what_hooks_get_are_instances_of_gunicorns_classes() -> None:
    code = """
import io, socket
from gunicorn.http.body import Body
from gunicorn.http.message import Message, Request
from gunicorn.http.wsgi import Response
from gunicorn.sock import BaseSocket, TCP6Socket, TCPSocket, UnixSocket
from tricorn.arbiter.listeners.sockets import Listener
from tricorn.gateway import observe
request = observe.Request({})
assert isinstance(request, Request) and isinstance(request, Message)
assert isinstance(observe.Response(request, "200 OK", [], 0), Response)
assert isinstance(io.BytesIO(), Body) and not isinstance([], Body)
with socket.create_server(("127.0.0.1", 0)) as one:
    listener = Listener(one)
    kinds = [kind for kind in (BaseSocket, TCPSocket, TCP6Socket, UnixSocket) if isinstance(listener, kind)]
    assert kinds == [BaseSocket, TCPSocket], kinds
"""
    python(code)


def test_finders_that_watch_imports_see_ours() -> None:
    """New Relic's and autowrapt's stand in front of all others, and find nothing themselves."""
    text = """
import sys
class Watching:
    seen = []
    def find_spec(self, name, path, target=None):
        self.seen.append(name)
sys.meta_path.insert(0, Watching())
from tricorn.compat import install
install()
import gunicorn.app
assert Watching.seen[-2:] == ["gunicorn", "gunicorn.app"], Watching.seen
"""
    subprocess.run([sys.executable, "-c", text], timeout=80, check=True)


@pytest.mark.parametrize(
    ("statement", "error", "name"),
    [
        ("from gunicorn.util import daemonize", "ImportError", "gunicorn.util.daemonize"),
        ("import gunicorn.util; gunicorn.util.daemonize", "AttributeError", "gunicorn.util.daemonize"),
        ("from gunicorn import dirty", "ImportError", "gunicorn.dirty"),
        ("import gunicorn.http2", "ModuleNotFoundError", "gunicorn.http2"),
        ("from gunicorn.dirty.app import DirtyApp", "ModuleNotFoundError", "gunicorn.dirty"),
    ],
)
def test_what_is_not_served_says_so(statement: str, error: str, name: str) -> None:
    said = python(f"try:\n  {statement}\nexcept Exception as error: print(type(error).__name__, error)")
    assert said.startswith(f"{error} tricorn does not serve {name}: ")


def test_one_may_ask_whether_a_name_is_there() -> None:
    assert python("import gunicorn.util; print(hasattr(gunicorn.util, 'daemonize'))") == "False"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Something that looks like gunicorn itself."""
    package = tmp_path / "gunicorn"
    (package / "app").mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = 'theirs'\n")
    (package / "glogging.py").write_text("class Logger: theirs = True\n")
    (package / "util.py").write_text("theirs = True\n")
    (package / "app" / "__init__.py").write_text("")
    (package / "app" / "pasterapp.py").write_text("class Paste: pass\n")
    return tmp_path


def test_a_gunicorn_that_is_installed_is_left_alone_except_for_its_logger(installed: Path) -> None:
    code = """
import gunicorn, gunicorn.util, gunicorn.glogging
from gunicorn.app.base import BaseApplication
from gunicorn.app.pasterapp import Paste
from gunicorn.glogging import Logger
from gunicorn.config import Config
import tricorn.log
assert "tricorn" in sys.modules["gunicorn.app.base"].__file__
assert Logger is tricorn.log.Logger and gunicorn.glogging.Logger is Logger
print(gunicorn.__version__, gunicorn.util.theirs)
try:
    import gunicorn.nothing
except ImportError as error:
    print(error)
"""
    assert python(code, installed) == "theirs True\nNo module named 'gunicorn.nothing'"


def test_a_logger_that_was_imported_before_is_replaced(installed: Path) -> None:
    code = """
from gunicorn.glogging import Logger
print(hasattr(Logger, "theirs"))
"""
    text = f"import sys; sys.path.insert(0, {str(installed)!r}); import gunicorn.glogging\n"
    text += "from tricorn.compat import install; install()\n" + code
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=80, check=True)
    assert done.stdout == "False\n"


def test_for_programs_every_name_is_ours(installed: Path) -> None:
    code = """
import gunicorn, gunicorn.util
install(programs=True)
import gunicorn, gunicorn.util
print(gunicorn.__version__, hasattr(gunicorn.util, "theirs"))
"""
    assert python(code, installed) == "27.0.1 False"


def test_the_version_is_told_alike() -> None:
    code = "import gunicorn; from tricorn.gateway.wsgi import SERVER_SOFTWARE as said; print(said.split()[0] == "
    assert python(code + "gunicorn.SERVER_SOFTWARE)") == "True"


class TestUtil:
    @pytest.mark.parametrize(
        ("text", "address"),
        [
            ("127.0.0.1:80", ("127.0.0.1", 80)),
            ("Host", ("host", 8000)),
            ("", ("0.0.0.0", 8000)),
            (":90", ("", 90)),
            ("tcp://h:1", ("h", 1)),
            ("[::1]:5", ("::1", 5)),
            ("[::1]", ("::1", 8000)),
            ("unix:/s", "/s"),
            ("unix:///s", "/s"),
            ("fd://3", 3),
        ],
    )
    def test_gunicorn_address_names(self, text: str, address: object) -> None:
        assert util.parse_address(text) == address

    @pytest.mark.parametrize("text", ["h:port", "fd://x"])
    def test_gunicorn_address_that_is_invalid(self, text: str) -> None:
        with pytest.raises(RuntimeError, match="is not a valid"):
            util.parse_address(text)

    def test_gunicorn_worker_class_names(self) -> None:
        assert util.load_class("pathlib.Path") is Path
        assert util.load_class(Path) is Path
        for name in ("Path", "pathlib.Nothing", "no_such_module.X"):
            with pytest.raises(RuntimeError, match="invalid or not found"):
                util.load_class(name)

    def test_gunicorn_file_names(self, tmp_path: Path) -> None:
        util.check_is_writable(str(tmp_path / "x"))
        util.unlink(str(tmp_path / "x"))
        util.unlink(str(tmp_path / "x"))
        with pytest.raises(RuntimeError, match="isn't writable"):
            util.check_is_writable(str(tmp_path))

    def test_gunicorn_text_helpers(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert util.to_bytestring("é") == b"\xc3\xa9"
        assert util.bytes_to_str(b"\xe9") == "é"
        assert util.http_date(0) == "Thu, 01 Jan 1970 00:00:00 GMT"
        assert util.is_ipv6("::1")
        assert not util.is_ipv6("h")
        util.warn("one\ntwo")
        assert capsys.readouterr().err == "!!!\n!!! WARNING: one\n!!! two\n!!!\n\n"
