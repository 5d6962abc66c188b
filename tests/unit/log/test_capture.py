"""capture_output: what the process prints goes into the error log. In a child, whose stdout and stderr are real."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PRELUDE = """
import os, subprocess, sys
from tricorn import log as logs
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.errors import ConfigError
def configure(**settings):
    return resolve([Layer({name: Raw(value, "test") for name, value in settings.items()})])
def say(text):
    print(text, "by print")
    os.write(1, (text + " by C\\n").encode())
    subprocess.run(["echo", text, "by a program"], check=True)
    print(text, "by stderr", file=sys.stderr)
"""


def run(code: str, tmp_path: Path) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout, done.stderr


def test_captured_output_goes_into_the_error_log(tmp_path: Path) -> None:
    assert run("""
log = logs.make(configure(errorlog="e", capture_output=True))
say("words"); log.info("a record"); print("last")
""", tmp_path) == ("", "")  # fmt: skip
    written = (tmp_path / "e").read_text()
    for how in ("by print", "by C", "by a program", "by stderr"):
        assert f"words {how}\n" in written
    assert "[INFO] a record\n" in written
    assert written.endswith("last\n")


def test_without_a_file_nothing_is_captured(tmp_path: Path) -> None:
    out, error = run("""
logs.make(configure(capture_output=True)); say("words")
""", tmp_path)  # fmt: skip
    assert "words by print" in out
    assert "words by stderr" in error


DICT = """
files = {"version": 1, "handlers": {"f": {"class": "logging.FileHandler", "filename": "dict.log"}},
         "root": {"level": "INFO", "handlers": []}, "loggers": {"gunicorn.error": {"level": "INFO", "handlers": ["f"]}}}
"""


def test_into_the_file_of_a_dictionary(tmp_path: Path) -> None:
    """gunicorn ignores the setting there (its issue 3209)."""
    assert run(DICT + """
log = logs.make(configure(logconfig_dict=files, capture_output=True)); say("words"); log.info("a record")
""", tmp_path) == ("", "")  # fmt: skip
    written = (tmp_path / "dict.log").read_text()
    for how in ("by print", "by C", "by a program", "by stderr"):
        assert f"words {how}\n" in written
    assert "a record\n" in written


def test_not_away_from_a_console_that_the_dictionary_writes_to(tmp_path: Path) -> None:
    out, _ = run(DICT + """
files["handlers"]["c"] = {"class": "logging.StreamHandler"}
files["loggers"]["gunicorn.error"]["handlers"] = ["f", "c"]
logs.make(configure(logconfig_dict=files, capture_output=True)); say("words")
""", tmp_path)  # fmt: skip
    assert "words by print" in out


def test_captured_output_after_a_rotation(tmp_path: Path) -> None:
    run("""
log = logs.make(configure(errorlog="e", capture_output=True))
print("before"); os.rename("e", "e.1"); log.reopen_files(); say("after")
""", tmp_path)  # fmt: skip
    assert (tmp_path / "e.1").read_text() == "before\n"
    assert (tmp_path / "e").read_text().count("after by") == 4


def test_a_new_file_that_cannot_be_opened_leaves_the_old_one(tmp_path: Path) -> None:
    run("""
os.mkdir("d"); log = logs.make(configure(errorlog="d/e", capture_output=True))
os.rename("d", "moved"); log.reopen_files(); say("after")
""", tmp_path)  # fmt: skip
    written = (tmp_path / "moved" / "e").read_text()
    assert "still writing to the old file" in written
    assert written.count("after by") == 4


def test_a_reload_that_switches_it_off(tmp_path: Path) -> None:
    out, _ = run("""
log = logs.make(configure(errorlog="e", capture_output=True)); print("captured")
log.setup(configure(errorlog="e")); say("free")
""", tmp_path)  # fmt: skip
    assert (tmp_path / "e").read_text() == "captured\n"
    assert "free by C\n" in out


def test_a_reload_that_fails_leaves_it_on(tmp_path: Path) -> None:
    run("""
class Failing(logs.Logger):
    def setup(self, cfg):
        super().setup(cfg)
        1 / 0
logs.make(configure(errorlog="e", capture_output=True))
for bad in (dict(logconfig="/no/such"), dict(logger_class=Failing), dict(logger_class=Failing, log_format="json")):
    try:
        logs.make(configure(capture_output=True, **bad))
    except ConfigError as error:
        print(error)
    else:
        raise SystemExit("no error")
say("still")
""", tmp_path)  # fmt: skip
    written = (tmp_path / "e").read_text()
    assert written.count("still by") == 4
    assert written.count("ZeroDivisionError") == 2


def test_reloads_leak_no_descriptor_and_leave_the_way_back(tmp_path: Path) -> None:
    out, _ = run("""
config = configure(errorlog="e", capture_output=True)
log = logs.make(config)
before = len(os.listdir("/proc/self/fd"))
for _ in range(10):
    log = logs.make(config)
    log.setup(config)
    for bad in (dict(errorlog="e", logconfig="/no"), dict(log_format="json", errorlog="/no/e")):
        try:
            log.setup(configure(capture_output=True, **bad))
        except ConfigError:
            assert log.cfg is config
        else:
            raise SystemExit("no error")
assert len(os.listdir("/proc/self/fd")) == before, (before, os.listdir("/proc/self/fd"))
say("captured")
log = logs.make(configure())
say("free")
""", tmp_path)  # fmt: skip
    assert (tmp_path / "e").read_text().count("captured by") == 4
    assert "free by C\n" in out
    assert "free" not in (tmp_path / "e").read_text()


@pytest.mark.parametrize("settings", ["", 'errorlog="e", '])
def test_with_json_prints_become_records(tmp_path: Path, settings: str) -> None:
    _, error = run(f"""
log = logs.make(configure({settings}log_format="json", capture_output=True))
print("one", end=" "); print("two"); print("three", file=sys.stderr); log.info("x")
sys.stdout.buffer.write(b"\\xff\\n")
sys.stdout.flush(); print("left over", end="")
""", tmp_path)  # fmt: skip
    text = (tmp_path / "e").read_text() if settings else error
    lines = [json.loads(line) for line in text.splitlines()]
    found = {line["message"]: (line["logger"], line["level"]) for line in lines}
    assert found["one two"] == ("stdout", "INFO")
    assert found["three"] == ("stderr", "ERROR")
    assert found["\ufffd"] == ("stdout", "INFO")
    assert "left over" in found
