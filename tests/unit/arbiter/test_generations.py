"""The level of the log that an operator has set, through the generations of a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter import generations as module
from tricorn.arbiter.generations import Generations


class Log:
    def __init__(self) -> None:
        self.levels: list[str] = []

    def change_level(self, level: str) -> None:
        self.levels.append(level)


def generation() -> Any:
    return SimpleNamespace(log=Log(), log_level=None, config=object(), all_listeners=list)


@pytest.fixture
def trial() -> tuple[Generations, Any, Any]:
    """A generation that serves, and one on trial."""
    unused: Any = SimpleNamespace(enter=lambda config: None)
    first, second = generation(), generation()
    made = Generations(unused, unused, first, unused)
    made._all[2] = made.current = second
    return made, first, second


def test_a_level_is_for_the_generations_there_are(trial: tuple[Generations, Any, Any]) -> None:
    generations, first, second = trial
    assert generations.log_level(1) is None
    generations.change_log_level("debug")
    assert (generations.log_level(1), generations.log_level(2)) == ("debug", "debug")
    assert (first.log.levels, second.log.levels) == ([], ["debug"]), "the arbiter logs with the newest"
    generations.commit(2)
    assert generations.log_level(1) is None, "its workers leave"
    assert generations.log_level(2) == "debug"


def test_a_reload_has_the_level_of_its_configuration(trial: tuple[Generations, Any, Any]) -> None:
    generations, first, _ = trial
    first.log_level = "debug"
    assert (generations.log_level(1), generations.log_level(2)) == ("debug", None)


def test_a_rollback_brings_the_level_back(trial: tuple[Generations, Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    generations, first, _ = trial
    first.log_level = "debug"
    monkeypatch.setattr(module.logs, "make", lambda config: Log())
    generations.roll_back(2)
    assert generations.current is first
    assert first.log.levels == ["debug"]
