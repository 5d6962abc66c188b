"""What a start does not import."""

from __future__ import annotations

import subprocess
import sys


def imported(code: str) -> set[str]:
    """The modules that are there when `code` has run in an interpreter of its own."""
    ending = "\nimport sys; print('\\n' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code + ending], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_the_version_needs_no_setting() -> None:
    for flag in ("--version", "-v"):
        modules = imported(f"from tricorn.cli import main; assert main([{flag!r}]) == 0")
        assert "tricorn.config" not in modules
        assert "argparse" not in modules


def test_reading_the_configuration_needs_neither_the_arbiter_nor_what_explains_failures() -> None:
    modules = imported("import tricorn.config.load")
    assert not {"tricorn.arbiter", "tricorn.workers", "tricorn._core", "logging", "asyncio"} & modules
    assert not {"dataclasses", "inspect", "ast", "traceback"} & modules


def test_the_arbiter_imports_no_event_loop() -> None:
    modules = imported("import tricorn.arbiter.start, tricorn.workers.auto")
    assert not {"asyncio", "ssl", "_hashlib", "importlib.metadata", "email", "urllib.parse"} & modules


def test_finding_uvloop_reads_no_metadata() -> None:
    """importlib.metadata imports sixty modules: a fifth of what an ASGI application waited for."""
    modules = imported("from tricorn.workers import registry; registry.choose_loop('asgi', 'auto')")
    assert not {"importlib.metadata", "email", "csv", "zipfile", "uvloop"} & modules
