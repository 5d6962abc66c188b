"""gunicornc's commands as requests of the control protocol, and the answers back."""

from __future__ import annotations

from typing import Any

import pytest
from tricorn.arbiter.control.gunicorn import translate
from tricorn.arbiter.control.session import Answered, Frame, Request


def request(command: str, *args: object) -> Request:
    found = translate(Frame(1, command, list(args)))
    assert isinstance(found, Request)
    assert found.id == 1
    return found


@pytest.mark.parametrize(
    ("command", "args", "word", "arguments"),
    [
        ("show workers", [], "workers", {}),
        ("SHOW STATS", [], "stats", {}),
        ("worker add", ["2"], "scale", {"workers": "+2"}),
        ("worker add", [], "scale", {"workers": "+1"}),
        ("worker remove 3", [], "scale", {"workers": "-3", "least": 1}),
        ("worker kill 4711", [], "kill", {"pid": 4711}),
        ("shutdown quick", [], "shutdown", {"quick": True}),
        ("shutdown", [], "shutdown", {}),
        ("reload", [], "reload", {}),
    ],
)
def test_a_command_is_a_request(command: str, args: list[object], word: str, arguments: dict[str, Any]) -> None:
    found = request(command, *args)
    assert (found.word, found.arguments) == (word, arguments)


def test_a_result_has_gunicorns_names() -> None:
    sizes: dict[str, object] = {"previous": 4, "workers": 1}
    answer = request("worker remove 9").translate({"ok": True, "result": sizes})
    assert answer == {"status": "ok", "data": {"removed": 3, "previous": 4, "total": 1}}


def test_an_error_has_its_sentence() -> None:
    denied: dict[str, object] = {"ok": False, "kind": "denied", "error": "uid 7 may only look."}
    for command in ("reload", "worker kill 4711"):
        assert request(command).translate(denied) == {"status": "error", "error": "uid 7 may only look."}


def test_a_pid_that_no_worker_has_is_an_answer() -> None:
    refused: dict[str, object] = {"ok": False, "kind": "refused", "error": "There is no worker with the pid 4711."}
    answer = request("worker kill 4711").translate(refused)
    assert answer == {"status": "ok", "data": {"success": False, "error": "Worker 4711 not found"}}


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("", "Empty command"),
        ("jump", "Invalid argument: Unknown command: jump"),
        ("show", "Invalid argument: Missing show target (all|workers|dirty|config|stats|listeners)"),
        ("worker kill", "Invalid argument: Missing PID for worker kill"),
        ("worker add 99999999999", "Invalid argument: 99999999999 is too large a number"),
        ("x" * 257, "Invalid argument: the command is too long"),
    ],
)
def test_what_is_no_command_is_answered_in_gunicorns_words(command: str, error: str) -> None:
    assert translate(Frame("a", command, [])) == Answered("a", {"status": "error", "error": error})


def test_what_needs_no_server_is_answered_at_once() -> None:
    found = translate(Frame(1, "show dirty", []))
    assert found == Answered(1, {"status": "ok", "data": {"enabled": False, "pid": None, "workers": [], "apps": []}})
