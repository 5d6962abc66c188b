"""Finding the application; the texts are those gunicorn's users know."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn.errors import AppImportError
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
            "Failed to find an application in 'loader_empty': it has no 'application', 'app' and no create_app(). "
            "Name it, as in 'loader_empty:ATTRIBUTE'.",
        ),
        ("loader_module:app.b", "Failed to find attribute 'b' in 'loader_module'."),
        ("loader_module:a b", "Failed to parse 'a b' as an attribute name or function call."),
        ("loader_module:a.b()", "Function reference must be a simple name: 'a.b()'"),
        ("loader_module:factory(x)", "Failed to parse arguments as literal values: 'factory(x)'"),
        ("loader_module:factory(**{'a': 1})", "Failed to parse arguments as literal values: "),
        ("loader_module:text", "Application object must be callable."),
        ("loader_module:text()", "Application factory must be callable, got str."),
        ("loader_module:none()", "Failed to find application object: 'none()'"),
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
