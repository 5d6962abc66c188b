"""Imports of the arbiter for its workers: standard modules, if the application imports anything, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tricorn.config.command_line import read_arguments
from tricorn.config.resolve import resolve
from tricorn.workers import shared_imports
from tricorn_green import early

APPLICATION = '''\
"""A page about import statements."""
import os, json
from flask import Flask
from . import pages

def view():
    import blog.views
'''


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "sched", raising=False)
    return tmp_path


def imported_by(uri: str) -> list[str]:
    return shared_imports.imported_by(resolve([read_arguments([uri] if uri else [])]))


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("mine.py", "mine:app"),
        ("mine.py", "mine"),
        ("mine.py", "mine.py:app"),
        ("site/wsgi.py", "site.wsgi:make(1)"),
        ("shop/__init__.py", "shop:app"),
    ],
)
def test_imports_are_read_from_the_source_of_the_application(project: Path, file: str, uri: str) -> None:
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text(APPLICATION)
    assert imported_by(uri) == ["flask", ".", "blog.views"]


def test_an_application_may_import_nothing(project: Path) -> None:
    (project / "mine.py").write_text("import os\n\ndef app(environ, start_response): ...\n")
    assert imported_by("mine:app") == []


@pytest.mark.parametrize("uri", ["nowhere:app", "", "nowhere/mine.py"])
def test_a_source_that_is_not_found_has_none(uri: str) -> None:
    assert imported_by(uri) == []


@pytest.mark.parametrize(
    ("imported", "expected"),
    [
        (["fastapi"], True),
        (["starlette.applications"], True),
        (["django.core.asgi"], True),
        (["django.core.wsgi", "flask"], False),
        (["fastapi_plugins"], False),
        ([], False),
    ],
)
def test_asgi_frameworks_are_known_by_name(imported: list[str], expected: bool) -> None:
    assert shared_imports.is_asgi(imported) is expected


def test_modules_that_do_not_exist_are_left_out() -> None:
    shared_imports.import_modules(["this_module_is_nowhere", "sched"])
    assert "sched" in sys.modules


@pytest.mark.parametrize("shadow", ["random.py", "random/__init__.py", "random.cpython-311-x86_64-linux-gnu.so"])
def test_nothing_is_imported_beside_a_module_of_the_users_with_a_standard_name(project: Path, shadow: str) -> None:
    (project / shadow).parent.mkdir(exist_ok=True)
    (project / shadow).write_text("")
    shared_imports.import_modules(["sched"])
    assert "sched" not in sys.modules


@pytest.mark.parametrize("other", ["random.txt", "random/mine.py", "mine.py"])
def test_other_files_shadow_nothing(project: Path, other: str) -> None:
    (project / other).parent.mkdir(exist_ok=True)
    (project / other).write_text("")
    shared_imports.import_modules(["sched"])
    assert "sched" in sys.modules


def test_nothing_is_imported_where_the_standard_library_is_in_no_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["library.zip"])
    shared_imports.import_modules(["sched"])
    assert "sched" not in sys.modules


@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_what_greenlet_workers_share_brings_nothing_that_is_patched(library: str) -> None:
    """Beyond what the arbiter has by then: a module that exists when a library patches may keep the original."""
    pytest.importorskip(library)
    program = (
        "import sys, tricorn.arbiter.start\n"
        "from tricorn_green import patching\n"
        "from tricorn.workers import shared_imports\n"
        f"patching.prepare({library!r})\n"
        "before = set(sys.modules)\n"
        "shared_imports.import_modules(shared_imports.CALCULATING)\n"
        f"print(sorted({set(early.PATCHED)} & set(sys.modules) - before))\n"
        "assert set(shared_imports.CALCULATING) <= set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "[]\n"
