"""Commands that print to a reader that leaves, and commands that explain themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import with_each

TRICORN = (sys.executable, "-m", "tricorn")

COMMANDS = (
    "--help", "-h", "--version", "--completions bash", "--print-config pipes_app:app", "bench --help", "ctl --help",
    "ctl help", "ctl reload --help", "dev-cert --help", "doctor --help", "doctor check --help", "exec --help",
    "init --help", "load --help", "top --help",
)  # fmt: skip


@pytest.fixture
def application(tmp_path: Path) -> Path:
    (tmp_path / "pipes_app.py").write_text("def app(environ, start_response): ...\n")
    return tmp_path


@with_each("line", COMMANDS)
def test_a_reader_that_leaves_ends_the_command_quietly(line: str, application: Path) -> None:
    """The pipe has no reader from the start, so that even one line is refused (EPIPE)."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        for unbuffered in ("", "1"):
            done = subprocess.run(
                [*TRICORN, *line.split()],
                stdout=writer,
                stderr=subprocess.PIPE,
                cwd=application,
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
                text=True,
                timeout=60,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, "")
    finally:
        os.close(writer)


@with_each("word", ("exec", "ctl", "top", "init", "load", "doctor", "bench", "dev-cert"))
def test_each_command_that_the_help_names_has_a_help(word: str, application: Path) -> None:
    for flag in ("--help", "-h"):
        done = subprocess.run(
            [*TRICORN, word, flag], capture_output=True, cwd=application, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.lower().startswith("usage: tricorn ")


def test_a_broken_pipe_to_something_else_is_an_error() -> None:
    from tricorn.cli.pipes import until_reader_leaves

    with pytest.raises(BrokenPipeError), until_reader_leaves():
        raise BrokenPipeError("of a socket")
