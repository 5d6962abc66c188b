"""`tricorn exec`: the environment of a command, and what its interpreters do at their start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tricorn.cli import main
from tricorn.compat import execute


def test_the_folders_come_first_once_and_others_stay() -> None:
    environ = execute.environment({"PATH": "/bin:/usr/bin", "PYTHONPATH": "/mine", "HOME": "/h"})
    again = execute.environment(environ)
    assert again == environ
    assert environ["PATH"].endswith("/exec/bin:/bin:/usr/bin")
    assert environ["PYTHONPATH"].endswith("/exec/site:/mine")
    assert (environ["HOME"], environ["TRICORN_TITLE_PREFIX"]) == ("/h", "gunicorn")
    assert os.access(f"{environ['PATH'].partition(':')[0]}/gunicorn", os.X_OK)


def test_a_title_prefix_that_was_asked_for_stays() -> None:
    assert execute.environment({"TRICORN_TITLE_PREFIX": "shop"})["TRICORN_TITLE_PREFIX"] == "shop"


def test_a_sitecustomize_that_is_hidden_is_run(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import gunicorn\nprint('theirs', gunicorn.__file__)\n")
    environ = execute.environment({**os.environ, "PYTHONPATH": str(tmp_path)})
    environ["PYTHONPATH"] += os.pathsep + os.pathsep.join(path for path in sys.path if path)
    code = "import sys; print('sitecustomize' in sys.modules, sys.modules['sitecustomize'].__file__)"
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("theirs ")
    assert "compat/gunicorn" in first
    assert second == f"True {tmp_path}/sitecustomize.py"


@pytest.mark.parametrize(
    ("command", "says"),
    [([], "Expected a command"), (["no-such-command-at-all"], "Cannot run 'no-such-command-at-all': No such file")],
)
def test_a_command_that_cannot_be_run(command: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", *command]) == 1
    assert says in capsys.readouterr().err
