"""`--print-config` and `--check-config`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn.cli import main
from tricorn.config import shown
from tricorn.config.resolve import Layer, Raw, resolve

pytestmark = pytest.mark.usefixtures("nothing_configured")


def page(**values: object) -> dict[str, str]:
    layer = Layer({name: Raw(value, "a test") for name, value in values.items()})
    lines = shown.page(resolve([layer])).splitlines()
    pairs = [line.split(" = ", 1) for line in lines if line and not line.startswith("#")]
    set_, default = [name.strip() for name, _ in pairs[: len(values)]], [name for name, _ in pairs[len(values) :]]
    assert set_ == sorted(values), "what differs is first"
    assert default == sorted(default)
    assert len({len(name) for name, _ in pairs}) == 1, "aligned, as gunicorn's"
    return {name.strip(): text for name, text in pairs}


def test_each_value_has_its_origin() -> None:
    shown = page(workers=3, bind=["a:1", "b:2"])
    assert shown["workers"] == "3  (a test)"
    assert shown["bind"] == "['a:1', 'b:2']  (a test)"
    assert shown["threads"] == "1  (default)"
    assert shown["pidfile"] == "None  (default)"


def test_the_files_that_were_read_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("filed_app.py").write_text("def application(environ, start_response): ...\n")
    assert main(["--print-config", "filed_app"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["# Files that were read: -", "", "# Set"]
    assert [line.split() for line in lines if line.startswith("config ")] == [["config", "=", "-", "(default)"]]
    Path("gunicorn.conf.py").write_text("threads = 2\n")
    Path("pyproject.toml").write_text("[tool.tricorn]\nthreads = 3\n")
    assert main(["--print-config", "filed_app"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# Files that were read: ./pyproject.toml, ./gunicorn.conf.py"
    assert [line.split() for line in lines if line.startswith("config ")] == [
        ["config", "=", "./gunicorn.conf.py", "(default)"]
    ]


def test_hooks_are_shown_by_their_names() -> None:
    def mine(server: object) -> None: ...

    class Kept:
        def __call__(self, server: object) -> None: ...

    shown = page(on_exit=mine, on_starting=Kept())
    assert shown["on_exit"] == f"<{mine.__qualname__}()>  (a test)"
    assert shown["on_starting"] == f"<{Kept.__qualname__}()>  (a test)"
    assert shown["when_ready"] == "<when_ready()>  (default)"


def test_classes_are_shown_by_their_names() -> None:
    assert page(logger_class=Path)["logger_class"].startswith("pathlib.")


def test_secrets_are_not_shown() -> None:
    shown = page(
        raw_env=["DATABASE_PASSWORD=hunter2", "DEBUG=1"],
        logconfig_dict={"handlers": {"sentry": {"dsn": "hunter2", "level": "INFO"}, "all": [{"api_key": "hunter2"}]}},
    )
    assert shown["raw_env"] == "['DATABASE_PASSWORD=***', 'DEBUG=***']  (a test)"
    assert "hunter2" not in shown["logconfig_dict"]
    assert "'level': 'INFO'" in shown["logconfig_dict"]


def test_the_application_is_loaded_after_printing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("inspected_app.py").write_text("def application(environ, start_response): ...\n")
    assert main(["--print-config", "inspected_app"]) == 0
    assert main(["--print-config", "inspected_app:nothing"]) == 1
    out, err = capsys.readouterr()
    assert out.count("wsgi_app ") == 2
    assert err == ("\nError while loading the application:\n\nFailed to find attribute 'nothing' in 'inspected_app'.\n")


def test_the_traceback_is_the_applications_own(capsys: pytest.CaptureFixture[str]) -> None:
    Path("inspected_broken.py").write_text("def f():\n    1/0\n\nf()\n")
    assert main(["--check-config", "inspected_broken"]) == 1
    error = capsys.readouterr().err
    assert error.count("  File ") == 2
    assert error.endswith("ZeroDivisionError: division by zero\n")


def test_an_application_that_exits(capsys: pytest.CaptureFixture[str]) -> None:
    Path("inspected_exits.py").write_text("raise SystemExit(0)\n")
    assert main(["--check-config", "inspected_exits"]) == 1
    assert "The application called sys.exit(0) while loading" in capsys.readouterr().err


def test_warnings_are_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("inspected_warned.py").write_text("def application(environ, start_response): ...\n")
    monkeypatch.setenv("WEB_CONCURRENCY", "")
    assert main(["--check-config", "inspected_warned"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "Warning: The environment variable WEB_CONCURRENCY is empty and was ignored.\n"
