"""The name of the server, which configuration files assign to gunicorn's."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from tricorn.compat import assigned
from tricorn.compat.gunicorn.http import wsgi
from tricorn.config.command_line import read_arguments
from tricorn.config.load import Loaded
from tricorn.config.resolve import Layer, Raw, resolve

PATCHED = "gunicorn.http.wsgi.Response.default_headers"


@pytest.fixture
def gunicorn(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    package: Any = ModuleType("gunicorn")
    package.__version__, package.SERVER, package.SERVER_SOFTWARE = "27.0.1", "gunicorn", "gunicorn/27.0.1"
    monkeypatch.setitem(sys.modules, "gunicorn", package)
    monkeypatch.delitem(sys.modules, assigned.WSGI, raising=False)
    return package


def named(*argv: str, **given: object) -> tuple[object, str]:
    layer = Layer({name: Raw(value, "conf.py") for name, value in given.items()})
    config = assigned.with_assigned(Loaded(resolve([layer, read_arguments(argv)]), ())).config
    return config.server_header, config.origin("server_header")


def response(monkeypatch: pytest.MonkeyPatch, lines: Any) -> None:
    module: Any = ModuleType(assigned.WSGI)
    module.Response = type("Response", (wsgi.Response,), {"default_headers": lines, "__module__": "conf"})
    monkeypatch.setitem(sys.modules, assigned.WSGI, module)


def test_what_is_not_assigned_changes_nothing(gunicorn: ModuleType) -> None:
    assert named() == ("tricorn", "default")


@pytest.mark.parametrize("name", ["SERVER", "SERVER_SOFTWARE"])
def test_assigned_constant(gunicorn: ModuleType, name: str) -> None:
    setattr(gunicorn, name, "shop")
    assert named() == ("shop", f"gunicorn.{name}")


def test_a_setting_is_stronger(gunicorn: ModuleType) -> None:
    gunicorn.SERVER = "shop"  # type: ignore[attr-defined]
    assert named(server_header="mine") == ("mine", "conf.py")


def test_a_response_without_the_field(gunicorn: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(self: Any) -> list[str]:
        return [line for line in wsgi.Response.default_headers(self) if not line.startswith("Server:")]

    response(monkeypatch, lines)
    assert named() == ("", PATCHED)


def test_a_response_with_another_name(gunicorn: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    response(monkeypatch, lambda self: ["HTTP/1.1 200 OK\r\n", "Server: shop\r\n"])
    assert named() == ("shop", PATCHED)


def test_a_response_that_asks_for_more_than_there_is(gunicorn: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    response(monkeypatch, lambda self: [self.no_such_attribute])
    assert named() == ("tricorn", "default")
