"""`distributions/tricorn-as-gunicorn`: what stands in site-packages after it was installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "distributions" / "tricorn-as-gunicorn"


def python(code: str, **variables: str) -> str:
    """What it prints, where the folder is one of the interpreter's site-packages."""
    code = f"import site; site.addsitedir({str(FOLDER)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_the_line_of_its_path_file_gives_the_names_to_tricorn(tmp_path: Path) -> None:
    """Also those of a gunicorn that is installed."""
    package = tmp_path / "gunicorn"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('this one is not to be found')\n")
    shown = python(
        "import gunicorn, gunicorn.util, os; print(os.path.dirname(gunicorn.util.__file__))",
        PYTHONPATH=os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))),
    )
    assert shown.strip().endswith(os.path.join("tricorn", "compat", "gunicorn"))


def test_its_command_is_tricorn() -> None:
    code = "import sys, tricorn_as_gunicorn as it; sys.argv = ['gunicorn', '--version']; print(it.command())"
    assert python(code).startswith("tricorn (version ")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs a parser for TOML")
def test_its_wheel_has_what_it_needs() -> None:
    import tomllib

    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())
    for name in project["tool"]["hatch"]["build"]["targets"]["wheel"]["include"]:
        assert (FOLDER / name).is_file()
    assert project["project"]["scripts"] == {"gunicorn": "tricorn_as_gunicorn:command"}
