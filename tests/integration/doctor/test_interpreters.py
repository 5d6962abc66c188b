"""Every interpreter that is supported: threads stuck in known places are told with their line, and why."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import until
from tests.harness.pythons import MINORS, interpreter, static_interpreter
from tests.integration.doctor.patient import Patient, functions

PYTHONS = [pytest.param(minor, id=f"3.{minor}") for minor in MINORS] + [pytest.param(None, id="static")]
IS_WHOLE = os.environ.get("TRICORN_WHOLE_TABLE") == "1"
ONE_OF_EACH_KIND = ("3.13", "static")
"""Frames are found in one way up to 3.12, in another from 3.13 on, and without a libpython."""

SOME = [each for each in PYTHONS if IS_WHOLE or each.id in ONE_OF_EACH_KIND]
on_some = pytest.mark.parametrize("python", SOME, indirect=True)
"""Threads that compute cost a processor. The rest of the interpreters have them with TRICORN_WHOLE_TABLE=1."""


@pytest.fixture(params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    if request.param is None:
        return static_interpreter() or pytest.skip("no Python is installed that is linked without libpython")
    return interpreter(request.param) or pytest.skip(f"Python 3.{request.param} is not installed")


def test_doctor_finds_a_sleep(tmp_path: Path, python: str) -> None:
    with Patient(tmp_path, "import time\ntime.sleep(600)  # here\n", python=python) as patient:
        thread = patient.verdict("BLOCKED_SYSCALL")
    assert thread["main"]
    assert thread["call"]["name"] in ("clock_nanosleep", "pselect6", "select")
    assert "s" in thread["call"]["detail"]
    assert [frame["function"] for frame in thread["python"]] == ["<module>"]
    assert thread["cpu"] < 0.2
    assert "_start" in functions(thread), "the stack is unwound to its end"


def test_names_and_lines_of_every_frame(tmp_path: Path, python: str) -> None:
    """Generators, comprehensions, a lambda, a method, names outside ASCII, and calls of several lines."""
    code = """
    import time
    class Größe:
        def met(self, x):
            return (x +
                    [time.sleep(600)  # here
                     for _ in "a"][0])
    def gen(g):
        try:
            yield g.met(
                1,
            )
        finally:
            pass
    (lambda: list(gen(Größe())))()
    """
    with Patient(tmp_path, code, python=python) as patient:
        thread = patient.here()
    qualified = python_minor(python) >= 11
    names = [(frame["function"], frame["line"]) for frame in thread["python"]]
    # 3.12 made comprehensions a part of their function (PEP 709).
    inner = [] if python_minor(python) >= 12 else [("Größe.met.<locals>.<listcomp>" if qualified else "<listcomp>", 6)]
    outer_line = 6
    assert names == [
        *inner,
        ("Größe.met" if qualified else "met", outer_line),
        ("gen", 10),
        ("<lambda>", 15),
        ("<module>", 15),
    ]


def test_lock_in_another_thread(tmp_path: Path, python: str) -> None:
    code = """
    import threading, time
    lock = threading.Lock()
    lock.acquire()
    def waits():
        lock.acquire()  # here
    threading.Thread(target=waits, daemon=True).start()
    time.sleep(600)
    """
    with Patient(tmp_path, code, python=python) as patient:
        thread = patient.verdict("LOCK_WAIT")
    assert not thread["main"]
    assert thread["python"][0]["function"] == "waits"


def test_python_loop(tmp_path: Path, python: str) -> None:
    with Patient(tmp_path, "n = 0\nwhile True: n += 1  # here\n", python=python) as patient:
        thread = patient.computing("CPU_PYTHON")
    assert thread["gil"]["holds"]


@on_some
def test_a_loop_of_one_instruction_is_no_call(tmp_path: Path, python: str) -> None:
    with Patient(tmp_path, "while True: pass  # here\n", python=python) as patient:
        patient.computing("CPU_PYTHON")


@on_some
def test_a_loop_around_a_short_call_is_no_call(tmp_path: Path, python: str) -> None:
    with Patient(tmp_path, "import time\nwhile time.thread_time() < 1e9: pass  # here\n", python=python) as patient:
        patient.computing("CPU_PYTHON")


@on_some
def test_garbage_that_is_collected(tmp_path: Path, python: str) -> None:
    code = """
    import gc
    rubbish = [[] for _ in range(1_000_000)]
    while True: gc.collect()  # here
    """
    with Patient(tmp_path, code, python=python) as patient:
        patient.computing("GC_PAUSE")


def test_a_call_that_holds_the_gil_and_its_victim(tmp_path: Path, python: str) -> None:
    code = """
    import ctypes, threading, time
    def holds():
        ctypes.PyDLL(None).usleep(600_000_000)  # here
    def suffers():
        while True:
            time.sleep(0.001)
    threading.Thread(target=suffers, daemon=True).start()
    time.sleep(0.2)
    holds()
    """
    with Patient(tmp_path, code, python=python) as patient:
        holder = patient.verdict("BLOCKED_HOLDING_GIL")
        (victim,) = until(lambda: [each for each in patient.look()["threads"] if each["gil"]["waits"]], "another waits")
    assert holder["gil"] == {"holds": True, "waits": False, "holder": None}
    assert holder["native"]["library"]["name"] == "libffi" or "ffi" in str(holder["native"])
    assert victim["verdict"] == "GIL_VICTIM"
    assert victim["gil"]["holder"] == holder["tid"]
    assert f"thread {holder['tid']}" in victim["sentence"]
    assert f"{patient.file}:{patient.line} in holds" in victim["sentence"]


@on_some
def test_a_regular_expression(tmp_path: Path, python: str) -> None:
    with Patient(tmp_path, 'import re\nre.match("(a+)+b", "a" * 60)  # here\n', python=python) as patient:
        thread = patient.computing("CPU_NATIVE_GIL")
    assert thread["native"]["missing"], "the kernel tells no stack of a thread that runs"


@on_some
def test_zlib_releases_the_gil(tmp_path: Path, python: str) -> None:
    code = """
    import os, zlib
    data = os.urandom(1 << 20) * 100
    while True: zlib.compress(data, 9)  # here
    """
    with Patient(tmp_path, code, python=python) as patient:
        thread = patient.computing("CPU_NATIVE")
    assert not thread["gil"]["holds"]


def test_a_build_that_is_not_known_is_told_by_its_kernel_part_and_a_sentence(tmp_path: Path) -> None:
    """A 3.13 that says of itself that it is 3.15, whose offsets are not known here."""
    python = interpreter(13) or pytest.skip("Python 3.13 is not installed")
    library = libpython(python) or pytest.skip("Python 3.13 is not installed")
    known = int(subprocess.run([python, "-c", "import sys; print(sys.hexversion)"], capture_output=True).stdout)
    unknown = known + (2 << 16)
    data = library.read_bytes()
    assert b"xdebugpy" + struct.pack("=Q", known) in data
    copy = tmp_path / library.name
    copy.write_bytes(data.replace(struct.pack("=Q", known), struct.pack("=Q", unknown)))
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nLD_PRELOAD={copy} exec {python} "$@"\n')
    program.chmod(0o755)
    with Patient(tmp_path, "import time\ntime.sleep(600)\n", python=str(program)) as patient:
        (thread,) = until(
            lambda: [each for each in patient.look()["threads"] if each["verdict"] == "BLOCKED_SYSCALL"], "it sleeps"
        )
        look = patient.look()
    assert thread["call"]["name"] == "clock_nanosleep"
    assert not thread["python"]
    assert thread["native"]["frames"], "native stacks need nothing of Python"
    assert look["python"] is None
    assert [note for note in look["missing"] if "is 3.15; Python frames can be read in 3.10 to 3.14" in note]


def libpython(python: str) -> Path | None:
    """Where it is linked with one."""
    linked = subprocess.run(["ldd", python], capture_output=True, text=True, check=True).stdout
    found = re.search(r"=> (\S*libpython3\S*)", linked)
    return Path(found[1]) if found else None


def python_minor(python: str) -> int:
    if python == sys.executable:
        return sys.version_info[1]
    return int(Path(python).resolve().name.removeprefix("python3."))
