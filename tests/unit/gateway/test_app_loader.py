"""Finding the application; the texts are those gunicorn's users know."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn.errors import AppImportError, BootError
from tricorn.gateway.app_loader import load

MODULE = """
def application(environ, start_response): ...
def app(environ, start_response): ...
def factory(*args, **kwargs):
    def made(environ, start_response): ...
    made.arguments = (args, kwargs)
    return made
def make_app(debug=False): return app
def strict(one): return app
def broken(): raise TypeError("inside")
def none(): return None
def answer(): return 42
def answer_maker(): return answer
async def later(): return app
def doubtful(environment=None, start=None): return environment["PATH_INFO"]
def app_with_defaults(environ=None, start_response=None): return [b"ok"]
class Shop:
    def create_app(self, debug=False): return app
    @classmethod
    def of_class(cls): return app
    @staticmethod
    def of_nothing(): return app
    @property
    def application(self): return app
    def __call__(self, environ, start_response): ...
shop = Shop()
class Mcp:  # as FastMCP
    def __init__(self, name, **methods):
        self.name = name
        vars(self).update(methods)
    def http_app(self, path=None, middleware=None, json_response=None, stateless_http=None):
        async def http(scope, receive, send): ...
        http.path = path
        return http
class Streamable:  # as mcp's
    def streamable_http_app(self, *, streamable_http_path="/mcp"):
        async def streamable(scope, receive, send): ...
        return streamable
class Carrier:
    def wsgi_app(self, environ, start_response): ...
mcp, streamable, carrier = Mcp("mine"), Streamable(), Carrier()
text = "no application"
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "loader_module.py").write_text(MODULE)
    (tmp_path / "loader_flask.py").write_text("app = print\n")
    (tmp_path / "loader_factory.py").write_text("def create_app(): return print\n")
    (tmp_path / "loader_empty.py").write_text("apps = print\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield
    for name in ("loader_module", "loader_flask", "loader_factory", "loader_empty"):
        sys.modules.pop(name, None)


def test_an_attribute_and_the_default_one() -> None:
    assert load("loader_module:app").__name__ == "app"
    assert load("loader_module").__name__ == "application"
    assert load("loader_module:").__name__ == "application"
    assert load("loader_flask") is print
    assert load("loader_factory") is print


def test_an_attribute_of_an_attribute() -> None:
    assert load("loader_module:text.upper")() == "NO APPLICATION"


def test_a_factory_that_is_not_called_one() -> None:
    assert load("loader_module:make_app").__name__ == "app"
    assert load("loader_module:factory").__name__ == "factory"  # takes whatever an interface gives


@pytest.mark.parametrize(
    "name", ["shop.create_app", "shop.create_app()", "shop.create_app(debug=True)", "shop.of_class", "Shop.of_class",
             "Shop.of_nothing", "shop.application"]
)  # fmt: skip
def test_factories_of_objects_and_classes(name: str) -> None:
    assert load(f"loader_module:{name}").__name__ == "app"
    assert load(f"loader_module:{name}", worker_class="sync").__name__ == "app"


def test_a_class_whose_instances_are_applications() -> None:
    assert type(load("loader_module:Shop")).__name__ == "Shop"


@pytest.mark.parametrize("worker_class", ["auto", "asgi"])
def test_a_server_that_has_a_method_which_makes_its_application(worker_class: str) -> None:
    def name(attribute: str) -> str:
        return load(f"loader_module:{attribute}", worker_class=worker_class).__name__

    assert name("mcp") == name("mcp.http_app") == name("mcp.http_app()") == "http"
    assert name("streamable") == name("streamable.streamable_http_app") == "streamable"
    assert load("loader_module:mcp.http_app(path='/tools')").path == "/tools"  # type: ignore[attr-defined]


def test_an_object_that_has_its_application() -> None:
    assert load("loader_module:carrier").__name__ == "wsgi_app"


def test_an_application_whose_arguments_have_defaults_is_none() -> None:
    for worker_class in ("auto", "sync", "gthread", "gevent"):
        assert load("loader_module:app_with_defaults", worker_class=worker_class)({}, None) == [b"ok"]
    assert load("loader_module:doubtful", worker_class="sync").__name__ == "doubtful"


def test_what_may_have_been_no_factory_says_so_when_it_fails() -> None:
    with pytest.raises(BootError) as caught:
        load("loader_module:doubtful")
    assert str(caught.value) == (
        "'doubtful' was called as a factory because all its parameters have defaults, and raised TypeError. "
        "If it is the application, set its worker class (sync or asgi, for example)."
    )
    assert 'return environment["PATH_INFO"]' in caught.value.details
    assert "app_loader.py" not in caught.value.details


def test_a_coroutine_function_is_left_to_the_class_that_awaits_it() -> None:
    assert load("loader_module:later", factory=True).__name__ == "later"


def test_a_module_by_its_file() -> None:
    assert load("loader_module.py").__name__ == "application"
    assert load("loader_module.py:app").__name__ == "app"
    assert load(f"{os.getcwd()}/loader_flask.py") is print


def test_a_file_that_is_not_there_is_a_module() -> None:
    with pytest.raises(ModuleNotFoundError):
        load("loader_nothing.py")


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("factory()", ((), {})),
        ("factory(1, 'a', None)", ((1, "a", None), {})),
        ("factory(debug=True, tags=['x'])", ((), {"debug": True, "tags": ["x"]})),
    ],
)
def test_a_factory_with_literal_arguments(call: str, arguments: object) -> None:
    assert vars(load(f"loader_module:{call}"))["arguments"] == arguments


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("loader_module:missing", "Failed to find attribute 'missing' in 'loader_module'."),
        (
            "loader_module:factry()",
            "Failed to find attribute 'factry' in 'loader_module'; did you mean 'loader_module:factory'?",
        ),
        (
            "loader_empty",
            "Failed to find an application in 'loader_empty': it has no 'application' or 'app', and no create_app(). "
            "Add the attribute, as in 'loader_empty:ATTRIBUTE'.",
        ),
        (
            "./loader_flask:app",
            "'./loader_flask' is not a module name; did you mean './loader_flask.py:app' or 'loader_flask:app'?",
        ),
        (
            "./loader_flask",
            "'./loader_flask' is not a module name; did you mean './loader_flask.py' or 'loader_flask'?",
        ),
        ("./loader_nothing:app", "'./loader_nothing' is not a module name; did you mean 'loader_nothing:app'?"),
        ("src/nothing.py:app", "There is no file 'src/nothing.py'."),
        (".relative:app", "'.relative' is not a module name"),
        (":app", "'' is not a module name, as in MODULE:ATTRIBUTE, and no file."),
        ("loader_module:app.b", "Failed to find attribute 'b' in 'loader_module'."),
        ("loader_module:a b", "Failed to parse 'a b' as an attribute name or function call."),
        ("loader_module:a[0]()", "A factory must be a name or a dotted name: 'a[0]()'"),
        ("loader_module:a.b()", "Failed to find attribute 'a' in 'loader_module'."),
        ("loader_module:factory(x)", "Failed to parse arguments as literal values: 'factory(x)'"),
        ("loader_module:factory(**{'a': 1})", "Failed to parse arguments as literal values: "),
        ("loader_module:text", "Application object must be callable. 'text' is a str."),
        ("loader_module:answer()", "Application object must be callable. 'answer()' has returned an int."),
        ("loader_module:answer", "Application object must be callable. 'answer' has returned an int."),
        ("loader_module:none", "Failed to find application object: 'none' has returned None."),
        (
            "loader_module:later()",
            "Application object must be callable. 'later()' has returned a coroutine: factories ",
        ),
        (
            "loader_module:answer_maker",
            "'answer_maker' has returned another factory, a function; expected the application.",
        ),
        ("loader_module:text()", "Application factory must be callable, got str."),
        ("loader_module:none()", "Failed to find application object: 'none()' has returned None."),
        ("loader_module:strict()", "TypeError: strict() missing 1 required positional argument: 'one'"),
    ],
)
def test_what_is_wrong_is_said_in_words(uri: str, words: str) -> None:
    with pytest.raises(AppImportError) as caught:
        load(uri)
    assert str(caught.value).startswith(words)
    assert caught.value.exit_code == 4


def test_a_module_that_is_not_there_is_pythons_own_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        load("no_such_module:app")


def test_an_error_inside_of_a_factory_is_its_own() -> None:
    with pytest.raises(TypeError, match="inside"):
        load("loader_module:broken()")
