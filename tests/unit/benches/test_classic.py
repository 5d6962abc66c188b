"""The table of classical measurements: each line is one that `tricorn bench` takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn_bench.bench import command
from tricorn_bench.bench.configuration import Configuration

from benches.classic.table import LINES, PAIRS
from benches.harness.lines import Line, words_of

with_each_line = pytest.mark.parametrize("line", LINES, ids=[line.name for line in LINES])


@with_each_line
def test_a_line_is_a_command_that_ends(line: Line) -> None:
    assert 0 < command.expected_seconds(words_of(line, Path("runs"))) < 3600
    assert len({Configuration.parse(one).name for one in line.configurations}) == len(line.configurations)


@with_each_line
def test_no_path_of_this_machine_gets_into_a_result(line: Line) -> None:
    assert not [word for word in words_of(line, Path("benches/runs/x")) if str(Path.cwd()) in word]


def test_all_of_it_takes_less_than_three_hours_and_a_quick_run_minutes() -> None:
    assert sum(command.expected_seconds(words_of(line, Path("runs"))) for line in LINES) < 3 * 3600
    quick = [Line(line.name, "", line.application, line.configurations, (*line.words, *line.quick)) for line in LINES]
    assert sum(command.expected_seconds(words_of(line, Path("runs"))) for line in quick) < 15 * 60


def test_gunicorn_stands_beside_tricorn_with_the_same_class_and_size() -> None:
    for ours, theirs in zip(PAIRS[::2], PAIRS[1::2], strict=True):
        tricorn, gunicorn = Configuration.parse(ours), Configuration.parse(theirs)
        assert (tricorn.server, gunicorn.server) == ("tricorn", "gunicorn")
        assert tricorn.words[: len(gunicorn.words)] == gunicorn.words


def test_names_are_of_one_measurement_each() -> None:
    assert len({line.name for line in LINES}) == len(LINES)
