"""`main` up to the arbiter: exit statuses and what they are told with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn import extensions
from tricorn.cli import COMMANDS, main
from tricorn.workers import boot_failure


@pytest.fixture(autouse=True)
def _restored(nothing_configured: Path) -> Iterator[None]:
    (nothing_configured / "fine_app.py").write_text("def application(environ, start_response): ...\n")
    (nothing_configured / "broken_app.py").write_text("import no_such_module_at_all\n")
    yield
    for name in ("fine_app", "broken_app"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "No application module specified. Name it, as in `tricorn MODULE:APPLICATION`."),
        (["-w", "0", "a"], "expected at least 1."),
        (
            ["-k", "snyc", "a"],
            "expected one of auto, sync, gthread, gevent, eventlet, asgi, tornado, aiohttp; did you mean 'sync'?",
        ),
        (["-b", "h:p", "a"], "'p' is not a valid port number."),
        (["--chdir", "/no/such/directory", "--check-config", "a"], "Invalid value for chdir"),
    ],
)
def test_what_cannot_be_used_ends_with_1_and_a_reason(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 1
    error = capsys.readouterr().err
    assert error.startswith("\nError: ")
    assert words in error


def test_check_config_loads_the_application() -> None:
    assert main(["--check-config", "fine_app"]) == 0


@pytest.mark.parametrize("app", ["fine_app:nope", "broken_app", "no_such_module"])
def test_check_config_says_why_it_cannot_be_loaded(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check-config", app]) == 1
    assert "Error while loading the application:" in capsys.readouterr().err


def test_every_command_can_be_meant_by_a_slip_in_its_name() -> None:
    assert sorted((*COMMANDS, *extensions.OWN[extensions.COMMANDS])) == list(boot_failure.COMMANDS)
