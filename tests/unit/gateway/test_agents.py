"""New Relic's agent is shown what gunicorn and uvicorn would show it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from tricorn import compat
from tricorn.gateway import agents


async def asgi(scope: Any, receive: Any, send: Any) -> None: ...


def wsgi(environ: Any, start_response: Any) -> list[bytes]:
    return []


class Wrapper:
    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __call__(self, *arguments: Any) -> Any:
        return self.wrapped(*arguments)


Wrapper.__module__ = "newrelic.common.object_wrapper"


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has wrapped `Application.wsgi`, as the agent's import hook does."""
    compat.install()
    from gunicorn.app.base import Application

    module = ModuleType("newrelic.api.asgi_application")
    module.ASGIApplicationWrapper = Wrapper  # type: ignore[attr-defined]
    for name in ("newrelic", "newrelic.agent", "newrelic.api"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    original = Application.wsgi
    monkeypatch.setattr(Application, "wsgi", lambda self: Wrapper(original(self)))


@pytest.mark.usefixtures("agent")
def test_a_wsgi_application_is_loaded_as_gunicorn_loads_it() -> None:
    found = agents.observed_wsgi(wsgi)
    assert isinstance(found, Wrapper)
    assert found.wrapped is wsgi


@pytest.mark.usefixtures("agent")
def test_an_asgi_application_is_wrapped_once() -> None:
    found = agents.observed_asgi(asgi)
    assert isinstance(found, Wrapper)
    assert found.wrapped is asgi
    assert agents.observed_asgi(found) is found


def test_without_the_agent_nothing_is_done() -> None:
    assert "newrelic.agent" not in sys.modules
    assert agents.observed_wsgi(wsgi) is wsgi
    assert agents.observed_asgi(asgi) is asgi
