"""The words of `tricorn doctor`, and its exit statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tricorn import cli
from tricorn_tools.cli import doctor_command

from tests.harness import until
from tests.harness.interpreter import python
from tests.harness.pythons import interpreter


def test_the_help_says_which_words_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor_command.main(["--help"]) == 0
    assert capsys.readouterr().out == doctor_command.USAGE


@pytest.mark.parametrize("words", [["--pid", "0"], ["--pid", "x"], ["--pid", "1", "--seconds", "0"], ["app:app"]])
def test_what_is_no_flag_is_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        doctor_command.main(words)
    assert ended.value.code == 2
    assert "tricorn doctor: error: " in capsys.readouterr().err


def test_a_process_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--pid", "2147483647"]) == 1
    assert capsys.readouterr().err == "Error: No such process: 2147483647.\n"


def test_a_process_that_is_no_python(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            assert doctor_command.main(["--pid", str(process.pid)]) == 1
        finally:
            process.kill()
    assert "is not a Python process" in capsys.readouterr().err


def test_an_interpreter_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    """The kernel's part is told, and why the rest is not."""
    old = interpreter(9) or pytest.skip("Python 3.9 is not installed")
    with subprocess.Popen(
        [old, "-c", "import time; print(flush=True); time.sleep(60)"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            until(
                lambda: "nanosleep" in read_wait_channel(process.pid) or "poll" in read_wait_channel(process.pid),
                "it sleeps",
            )
            assert doctor_command.main(["--pid", str(process.pid)]) == 0
        finally:
            process.kill()
    told = capsys.readouterr().out
    assert "is 3.9; Python frames can be read in 3.10 to 3.14." in told
    assert "BLOCKED_SYSCALL" in told


def read_wait_channel(pid: int) -> str:
    return Path(f"/proc/{pid}/wchan").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_process_of_another_user() -> None:
    """The sentence names both users. What is imported is, before the files of root are out of reach."""
    code = """
    import os, sys
    from tricorn_tools.doctor.engine import DoctorError, look
    os.setuid(65534)
    try:
        look(int(sys.argv[1]))
    except DoctorError as error:
        print(error)
    """
    assert "belongs to user 0, this command runs as user 65534" in python(code, str(os.getpid())).stdout


def test_a_process_can_look_at_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """The thread that looks is not told of itself; the others are."""
    import threading

    end = threading.Event()
    waiting = threading.Thread(target=end.wait)
    waiting.start()
    try:
        assert doctor_command.main(["--pid", str(os.getpid()), "--json", "--seconds", "0.02"]) == 0
    finally:
        end.set()
        waiting.join()
    report = json.loads(capsys.readouterr().out)
    threads = {thread["tid"]: thread for thread in report["threads"]}
    assert threading.get_native_id() not in threads
    assert threads[waiting.native_id or 0]["verdict"] == "LOCK_WAIT"
    assert report["python"]["version"] == f"3.{sys.version_info[1]}"


def test_an_application_of_that_name_is_an_application(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_is_module", lambda name: True)
    monkeypatch.setattr(cli, "serve", lambda sources: 77)
    assert cli.main(["doctor"]) == 77
