"""Completion scripts: every flag, in the grammar of its shell."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tricorn.config.command_line import COMPLETIONS, SHELLS
from tricorn.config.registry import SETTINGS
from tricorn.workers import registry

FLAGS = [flag for setting in SETTINGS for flag in setting.flags if setting.part_of is None]


def script_of(shell: str) -> str:
    return Path(COMPLETIONS, f"tricorn.{shell}").read_text()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_understands_it(shell: str) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    script = script_of(shell)
    done = subprocess.run([path, "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def complete(*words: str) -> set[str]:
    """What bash offers for the last of `words`."""
    quoted = " ".join(f"'{word}'" for word in words)
    script = (
        f"{script_of('bash')}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n_tricorn\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()) - {""}


def test_bash_offers_every_flag() -> None:
    assert complete("tricorn", "-") >= {*FLAGS, "--help", "--help-all", "--version", "--completions"}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["tricorn", "--log-le"], {"--log-level"}),
        (["tricorn", "--log-level", ""], {"debug", "info", "warning", "error", "critical"}),
        (["tricorn", "--log-level", "=", "de"], {"debug"}),
        (["tricorn", "--log-level", "="], {"debug", "info", "warning", "error", "critical"}),
        (["tricorn", "-k", "s"], {"sync"}),
        (["tricorn", "-w", ""], set()),
        (["tricorn", "-u", "roo"], {"root"}),
        (["tricorn", "--chdir", "/et"], {"/etc"}),
    ],
)
def test_bash_offers_what_can_follow(words: list[str], offered: set[str]) -> None:
    assert complete(*words) == offered


def test_bash_offers_names_with_spaces(tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    assert complete("tricorn", "-c", str(tmp_path) + "/") == {str(tmp_path / "a file")}


def test_zsh_has_every_flag() -> None:
    script = script_of("zsh")
    assert script.startswith("#compdef tricorn\n")
    for flag in FLAGS:
        assert re.search(rf"^    '[^']*{re.escape(flag)}[=+]?\[", script, re.MULTILINE), flag


def test_fish_has_every_flag() -> None:
    script = script_of("fish")
    for flag in FLAGS:
        word = f"-l {flag[2:]} " if flag.startswith("--") else f"-s {flag[1:]} "
        assert word in script


def test_the_worker_classes_are_those_there_are() -> None:
    assert complete("tricorn", "--worker-class", "") == set(registry.NAMES)
