"""`tricorn ctl`: from words to what the server is asked."""

from __future__ import annotations

from typing import Any

import pytest
from tricorn.arbiter.control.commands import Meaning
from tricorn.arbiter.control.commands import parse as parse_request
from tricorn.arbiter.control.inquiries import Cancel, SetLogLevel
from tricorn.arbiter.policy.arguments import Arguments
from tricorn.arbiter.policy.events import ControlRequest
from tricorn.cli import ctl_text
from tricorn.cli.ctl_syntax import FORMS, Asking, Usage, asks_for_help, explanation, parse


def understood(asking: Asking) -> Meaning:
    return parse_request(Arguments(asking.word, asking.arguments, lambda by, value: value, lambda: (1,)))


@pytest.mark.parametrize(
    ("line", "word", "arguments"),
    [
        ("status", "status", {}),
        ("requests", "requests", {}),
        ("requests --older 1.5", "requests", {"older": 1.5}),
        ("requests --older=2s", "requests", {"older": 2.0}),
        ("config --changed", "config", {"changed": True}),
        ("reload", "reload", {}),
        ("reload --wait", "reload", {"wait": True}),
        ("reload --canary", "reload", {"canary": "1"}),
        ("reload --canary 2 --wait", "reload", {"wait": True, "canary": "2"}),
        ("reload --canary=10% --for=90s", "reload", {"canary": "10%", "for": 90.0}),
        ("reload --for 120 --canary 0", "reload", {"canary": "0", "for": 120.0}),
        ("scale 6", "scale", {"workers": "6"}),
        ("scale -1", "scale", {"workers": "-1"}),
        ("scale auto", "scale", {"workers": "auto"}),
        ("drain --wait 3", "drain", {"slot": 3, "wait": True}),
        ("cancel 2.5@77", "cancel", {"slot": 2, "place": 5, "start": 77}),
        ("worker add", "scale", {"workers": "+1"}),
        ("worker remove 2", "scale", {"workers": "-2"}),
        ("worker kill 4711", "kill", {"pid": 4711}),
        ("stacks", "stacks", {}),
        ("stacks 2", "stacks", {"slot": 2}),
        ("ready off", "ready", {"on": False}),
        ("log-level DEBUG", "log-level", {"level": "debug"}),
        ("shutdown", "shutdown", {}),
        ("shutdown graceful", "shutdown", {}),
        ("shutdown quick", "shutdown", {"quick": True}),
        ("show stats", "stats", {}),
    ],
)
def test_a_line_is_one_request_which_the_server_understands(line: str, word: str, arguments: dict[str, Any]) -> None:
    asking = parse(line.split())
    assert asking == Asking(word, arguments)
    assert understood(asking)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("status now", "Usage: status"),
        ("scale", "Usage: scale N|+N|-N|auto"),
        ("scale six", "Usage: scale N|+N|-N|auto"),
        ("reload 2", "Usage: reload [--wait] [--canary [N|N%]] [--for SECONDS]"),
        ("reload --canary some", "Usage: reload [--wait] [--canary [N|N%]] [--for SECONDS]"),
        ("reload --canary 1 2", "Usage: reload [--wait] [--canary [N|N%]] [--for SECONDS]"),
        ("reload --for", "Usage: reload [--wait] [--canary [N|N%]] [--for SECONDS]"),
        ("reload --for ever", "Usage: reload [--wait] [--canary [N|N%]] [--for SECONDS]"),
        ("drain", "Usage: drain WORKER [--wait]"),
        ("drain one", "Usage: drain WORKER [--wait]"),
        ("cancel 2.5", "Usage: cancel WORKER.SLOT@START"),
        ("cancel 2@77", "Usage: cancel WORKER.SLOT@START"),
        ("cancel", "Usage: cancel WORKER.SLOT@START"),
        ("ready", "Usage: ready on|off"),
        ("worker", "Usage: worker add [N] | worker kill PID | worker remove [N]"),
        ("worker eat 3", "Usage: worker add [N] | worker kill PID | worker remove [N]"),
        ("shutdown now", "Usage: shutdown [graceful|quick]"),
        ("requests --older x", "Usage: requests [--older SECONDS]"),
        ("relaod", "Unknown command 'relaod'; did you mean 'reload'?"),
        ("xyzzy", "Unknown command 'xyzzy'; `help` lists the commands."),
    ],
)
def test_a_line_that_is_not_understood_is_answered_with_what_would_be(line: str, sentence: str) -> None:
    with pytest.raises(Usage) as caught:
        parse(line.split())
    assert str(caught.value) == sentence


def test_every_word_explains_itself() -> None:
    for name, form in FORMS.items():
        words = name.split()
        for line in ([*words, "--help"], [*words, "-h"], ["help", *words]):
            asked = asks_for_help(line)
            assert asked == words, line
            assert explanation(asked) == f"usage: tricorn ctl {form.usage}\n\n{form.help}"
    assert explanation(["ls"]).startswith("usage: tricorn ctl ls\n")
    assert asks_for_help(["reload", "--wait"]) is None
    assert asks_for_help(["reload"]) is None


def test_the_first_half_of_a_word_explains_all_that_begin_so() -> None:
    assert [line for line in explanation(["worker"]).splitlines() if line.startswith("usage")] == [
        "usage: tricorn ctl worker add [N]",
        "usage: tricorn ctl worker remove [N]",
        "usage: tricorn ctl worker kill PID",
    ]
    with pytest.raises(Usage, match="did you mean 'reload'"):
        explanation(["relaod"])


def test_every_form_is_told_with_a_sentence() -> None:
    for name, form in FORMS.items():
        assert form.usage.startswith(name)
        assert form.help.endswith(".")


def test_only_what_waits_is_given_time() -> None:
    assert parse(["reload", "--wait"]).waits
    assert not parse(["reload"]).waits


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h"), (90061, "1 d 1 h")]
)
def test_a_duration_is_told_in_two_units(seconds: float, text: str) -> None:
    assert ctl_text.duration(seconds) == text


def test_results_are_tables_and_lines() -> None:
    worker = {
        "slot": 1,
        "pid": 7,
        "class": "asgi",
        "generation": 2,
        "state": "booting",
        "stuck": 1,
        "note": "slow",
        "age": 3,
    }
    assert ctl_text.text("workers", {"workers": [worker]}).splitlines() == [
        "SLOT  PID  CLASS  GEN  STATE    BUSY  QUEUE  REQUESTS  CONN  AGE  NOTE",
        "1     7    asgi   2    booting  -     -      -         -     3 s  1 stuck; slow",
    ]
    assert ctl_text.text("workers", {"workers": []}) == "No workers."
    assert ctl_text.text("scale", {"previous": 1, "workers": 2, "ready": True}) == "previous: 1\nworkers: 2\nready: yes"
    assert ctl_text.text("event", {"event": "gone", "pid": 7, "cause": None}) == "gone pid=7"
    assert ctl_text.text("reopen", {}) == "OK"


def test_a_terminal_is_told_nothing_by_others() -> None:
    request = {"slot": 1, "pid": 7, "age": 1.0, "text": "GET /\x1b]0;mine\x07\x9b2J"}
    shown = ctl_text.text("requests", {"requests": [request], "count": 1})
    assert shown.splitlines()[1] == r"1     7    1.0 s  -      GET /\x1b]0;mine\x07\x9b2J"


def test_the_words_that_change_something_are_those_that_change_something_in_the_server() -> None:
    lines = [usage.split("|")[0].split(" [")[0] for usage in (form.usage for form in FORMS.values())]
    numbers = {"WORKER.SLOT@START": "2.5@77", "WORKER": "2", "PID": "4711", "N": "2", "LEVEL": "info"}
    for line in lines:
        asking = parse([numbers.get(word, word) for word in line.split()])
        if asking.word == "memory":
            continue  # ctl reads it itself, from /proc
        assert asking.changes == isinstance(understood(asking), ControlRequest | Cancel | SetLogLevel), line
