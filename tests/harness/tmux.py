"""A program in a terminal of a known size: tmux runs it, types, and says what is on the screen."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.deadline import PATIENCE, until

if TYPE_CHECKING:
    from typing_extensions import Self

needs_tmux = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")

SETTINGS = """\
set -g default-terminal screen-256color
set -g status off
set -s escape-time 0
"""
_ENDED = "ended with status"
DARK, LIGHT = "fg=white,bg=black", "fg=black,bg=white"


class Tmux:
    """A context manager. The program is ended with it."""

    def __init__(
        self, words: Sequence[str], width: int, height: int, *, style: str = DARK, env: Mapping[str, str] | None = None
    ) -> None:
        self._directory = tempfile.mkdtemp(prefix="tricorn-tmux-")
        conf = Path(self._directory) / "conf"
        conf.write_text(f"{SETTINGS}set -g window-style {style}\n")
        self._base = ["tmux", "-u", "-S", f"{self._directory}/s", "-f", str(conf)]
        self._words = ["sh", "-c", f'"$@"; echo "{_ENDED} $?"; sleep 60', "sh", *words]
        self._size = ["-x", str(width), "-y", str(height)]
        self._env = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}

    def __enter__(self) -> Self:
        self._tmux("new-session", "-d", *self._size, *self._words)
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")
        shutil.rmtree(self._directory, ignore_errors=True)

    def lines(self) -> list[str]:
        return self._tmux("capture-pane", "-p").split("\n")[:-1]

    def text(self) -> str:
        return "\n".join(self.lines())

    def attributes(self) -> set[str]:
        """The parameters of every SGR sequence that the screen is made of."""
        found = re.findall(r"\x1b\[([0-9;]*)m", self._tmux("capture-pane", "-p", "-e"))
        return {parameter for parameters in found for parameter in parameters.split(";")}

    def type(self, *keys: str) -> None:
        """Characters, or tmux's names such as `Down` and `Enter`."""
        for key in keys:
            self._tmux("send-keys", key if len(key) > 1 else "-l", *([key] if len(key) == 1 else []))

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def wait(self, pattern: str, *, within: float = PATIENCE) -> re.Match[str]:
        """What of the screen matches, as soon as it does."""
        try:
            return until(
                lambda: re.search(pattern, self.text(), re.MULTILINE), f"{pattern!r} on the screen", within=within
            )
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows:\n{self.text()}") from None

    def status(self) -> int:
        """The exit status of the program, which is waited for."""
        return int(self.wait(f"^{_ENDED} ([0-9]+)$")[1])

    def is_on_alternate_screen(self) -> bool:
        return self._tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            [*self._base, *words],
            env=self._env,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=20,
            check=True,
        )
        return done.stdout
