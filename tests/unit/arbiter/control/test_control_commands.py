"""What requests mean, and what is refused with a sentence."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from tricorn.arbiter.control.commands import COMMANDS, Follow, Meaning, Query, parse
from tricorn.arbiter.control.inquiries import Cancel, Profile, SetLogLevel, Stacks
from tricorn.arbiter.policy.arguments import Arguments, Refusal
from tricorn.arbiter.policy.control_requests import (
    Drain,
    Kill,
    ReloadAll,
    Reopen,
    Scale,
    SetReadiness,
    Shutdown,
    UpgradeServer,
)


def meant(word: str, **arguments: Any) -> Meaning:
    """Of a server whose worker 3 has the slot 1 and the pid 103."""
    known = {("slot", 1): 3, ("pid", 103): 3}
    return parse(Arguments(word, arguments, lambda by, value: known.get((by, value)), lambda: (1, 3)))


@pytest.mark.parametrize(
    ("word", "arguments", "meaning"),
    [
        ("status", {}, Query("status")),
        ("status", {"brief": True}, Query("status", brief=True)),
        ("workers", {"brief": True}, Query("workers", brief=True)),
        ("requests", {"older": 1.5}, Query("requests", older=1.5)),
        ("config", {"changed": True}, Query("config", changed=True)),
        ("events", {}, Follow()),
        ("reload", {}, ReloadAll()),
        ("reload", {"wait": True}, ReloadAll(wait=True)),
        ("reload", {"canary": True}, ReloadAll(canary=1)),
        ("reload", {"canary": "2", "for": 7}, ReloadAll(canary=2, seconds=7)),
        ("reload", {"canary": "10%"}, ReloadAll(canary="10%")),
        ("scale", {"workers": 6}, Scale(6)),
        ("scale", {"workers": "6"}, Scale(6)),
        ("scale", {"workers": "+2"}, Scale(by=2)),
        ("scale", {"workers": "-1"}, Scale(by=-1)),
        ("scale", {"workers": "auto"}, Scale()),
        ("scale", {"workers": "-3", "least": 1}, Scale(by=-3, least=1)),
        ("cancel", {"slot": 1, "place": 0, "start": 1 << 50}, Cancel((3,), 0, 1 << 50)),
        ("drain", {"slot": 1}, Drain(3)),
        ("drain", {"slot": 1, "wait": True}, Drain(3, wait=True)),
        ("kill", {"pid": 103}, Kill(3)),
        ("stacks", {}, Stacks((1, 3))),
        ("stacks", {"slot": 1}, Stacks((3,))),
        ("profile", {"seconds": 10}, Profile((1, 3), 10, 100)),
        ("profile", {"seconds": 0.5, "rate": 20, "slot": 1}, Profile((3,), 0.5, 20)),
        ("ready", {"on": False}, SetReadiness(False)),
        ("log-level", {"level": "debug"}, SetLogLevel(level="debug")),
        ("reopen", {}, Reopen()),
        ("upgrade", {}, UpgradeServer()),
        ("shutdown", {"quick": True}, Shutdown(quick=True)),
    ],
)
def test_a_word_means_one_thing(word: str, arguments: dict[str, Any], meaning: Meaning) -> None:
    assert meant(word, **arguments) == meaning


@pytest.mark.parametrize(
    ("word", "arguments", "kind", "sentence"),
    [
        ("nonsense", {}, "unknown", "Unknown command 'nonsense'. Known commands: cancel, config, "),
        ("n" * 5000, {}, "unknown", f"Unknown command '{'n' * 40}'"),
        ("status", {"now": 1}, "refused", "status has no argument 'now'."),
        ("scale", {}, "refused", "scale wants a number such as 6, +2 or -1, or auto as 'workers'."),
        ("scale", {"workers": True}, "refused", "scale wants"),
        ("scale", {"workers": 1.5}, "refused", "scale wants"),
        ("scale", {"workers": -1}, "refused", "scale wants"),
        ("scale", {"workers": "+" + "9" * 99}, "refused", "scale wants"),
        ("scale", {"workers": "+"}, "refused", "scale wants"),
        ("scale", {"workers": "٣"}, "refused", "scale wants"),
        ("scale", {"workers": 1 << 40}, "refused", "scale wants"),
        ("drain", {"slot": 2}, "refused", "There is no worker with the slot 2."),
        ("drain", {}, "refused", "drain wants a whole number as 'slot'."),
        ("profile", {}, "refused", "profile wants 0.1 to 600 seconds as 'seconds'."),
        ("profile", {"seconds": 601}, "refused", "profile wants 0.1 to 600 seconds as 'seconds'."),
        ("profile", {"seconds": 1, "rate": 0}, "refused", "profile wants 1 to 1000 samples per second as 'rate'."),
        ("cancel", {"slot": 1, "place": 0}, "refused", "cancel wants a whole number as 'start'."),
        ("cancel", {"slot": 1, "place": 0, "start": 1 << 64}, "refused", "cancel wants a whole number as 'start'."),
        ("cancel", {"slot": 1, "place": 1 << 40, "start": 1}, "refused", "cancel wants a whole number as 'place'."),
        ("kill", {"pid": 3}, "refused", "There is no worker with the pid 3."),
        ("ready", {}, "refused", "ready wants true or false as 'on'."),
        ("reload", {"wait": 1}, "refused", "reload wants true or false as 'wait'."),
        (
            "reload",
            {"canary": "some"},
            "refused",
            "reload wants a number such as 1, or a share such as 10% as 'canary'.",
        ),
        (
            "reload",
            {"canary": "200%"},
            "refused",
            "reload wants a number such as 1, or a share such as 10% as 'canary'.",
        ),
        ("reload", {"canary": [1]}, "refused", "reload wants a number such as 1, or a share such as 10% as 'canary'."),
        ("reload", {"for": 0}, "refused", "reload wants a number of seconds as 'for'."),
        ("reload", {"for": float("inf")}, "refused", "reload wants a number of seconds as 'for'."),
        ("requests", {"older": "1"}, "refused", "requests wants a number of seconds as 'older'."),
        ("requests", {"older": float("nan")}, "refused", "requests wants"),
        ("log-level", {"level": "loud"}, "refused", "log-level wants one of debug, info, warning, error, critical"),
        ("log-level", {"level": []}, "refused", "log-level wants"),
    ],
)
def test_what_is_not_understood_is_refused(word: str, arguments: dict[str, Any], kind: str, sentence: str) -> None:
    with pytest.raises(Refusal) as caught:
        meant(word, **arguments)
    assert caught.value.kind == kind
    assert str(caught.value).startswith(sentence)


class Given(dict[str, Any]):
    """Has every argument, and remembers those that were read."""

    VALUES: ClassVar[dict[str, Any]] = {"level": "info", "since": "start", "workers": 1, "seconds": 1, "on": True}

    def __init__(self) -> None:
        self.read: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return self.VALUES.get(name, False if default is False else 1)

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return True


def test_a_word_takes_the_arguments_that_it_reads() -> None:
    """One that is read and not taken would be refused; one that is taken and not read would be ignored."""
    for word, command in COMMANDS.items():
        given = Given()
        command.parse(Arguments(word, given, lambda by, value: 1, lambda: (1,)))
        assert given.read == set(command.takes), word
