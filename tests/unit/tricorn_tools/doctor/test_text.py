"""The report of `tricorn doctor` for people."""

from __future__ import annotations

from typing import Any

from tricorn_tools.doctor.text import text

LIBPQ = "/v/libpq.so.5"


def thread(**changes: Any) -> dict[str, Any]:
    return {
        "tid": 7,
        "name": "python",
        "main": True,
        "state": "S",
        "cpu": 0.0,
        "queued": 0.0,
        "verdict": "BLOCKED_SYSCALL",
        "sentence": "Blocked in the system call poll.",
        "python": [{"file": "/srv/app.py", "function": "bad", "line": 14}],
        "application": None,
        "native": {"frames": [], "library": None, "missing": ""},
        "call": None,
        "wait_channel": "",
        "gil": {"holds": False, "waits": False},
        "moving": False,
        **changes,
    }


def report(*threads: dict[str, Any], gil: dict[str, Any] | None = None) -> dict[str, Any]:
    python = {"version": "3.12", "path": "/l/libpython3.12.so", "gil": gil or {"locked": False, "holder": None}}
    return {
        "pid": 5,
        "command": "python app.py",
        "python": python,
        "threads": list(threads),
        "notes": [],
        "seconds": 0.1,
    }


def source(file: str, line: int) -> str:
    return f"line {line}" if file == "/srv/app.py" else ""


def test_a_thread_is_a_block_with_its_frames_and_their_source() -> None:
    assert text(report(thread(queued=0.2)), source) == (
        "Process 5: python app.py\n"
        "CPython 3.12 (/l/libpython3.12.so), GIL free.\n"
        "\n"
        "Thread 7 (python, main thread), state S, CPU 0 %, waiting for CPU 20 %: BLOCKED_SYSCALL\n"
        "  Blocked in the system call poll.\n"
        "    /srv/app.py:14 in bad: line 14"
    )


def native(path: str, function: str | None, *, certain: bool = True) -> dict[str, Any]:
    return {"address": 4096, "path": path, "function": function, "offset": 0, "certain": certain}


def stack(*frames: dict[str, Any]) -> dict[str, Any]:
    return {"frames": list(frames), "library": {"name": "libpq", "path": LIBPQ, "function": "PQexec"}, "missing": ""}


def test_frames_of_a_library_are_told_up_to_the_interpreter() -> None:
    frames = (
        native("/c/libc.so.6", "poll"),
        native(LIBPQ, "PQexec"),
        native("/v/_psycopg.so", "execute", certain=False),
        native("/l/libpython3.12.so", "_PyEval_EvalFrameDefault"),
        native("/v/_core.so", "outer"),
    )
    one = report(thread(native=stack(*frames)))
    assert [line.strip() for line in text(one, source).splitlines() if "native" in line] == [
        "native: poll (libc.so.6)",
        "native: PQexec (libpq.so.5)",
        "native: execute (_psycopg.so) (perhaps)",
    ]
    assert "outer (_core.so)" in text(one, source, native=True)


def test_who_holds_the_gil() -> None:
    held = text(report(thread(), gil={"locked": True, "holder": 7}), source)
    assert "GIL held by thread 7 (python)." in held
    gone = text(report(thread(), gil={"locked": True, "holder": None}), source)
    assert ", GIL held." in gone
    none = text(report(thread(), gil={"locked": None, "holder": None}), source)
    assert "GIL disabled or not found." in none


def test_threads_without_python_are_a_line_each() -> None:
    other = thread(tid=8, name="rdk:main", main=False, verdict="NATIVE", sentence="Native thread.", python=[])
    told = text(report(thread(), other), source)
    assert told.endswith(
        "1 thread without Python (--native shows their stacks):\n  8 (rdk:main), CPU 0 %: Native thread."
    )
    assert "Thread 8 (rdk:main), state S" in text(report(thread(), other), source, native=True)


def test_a_build_that_is_not_known_is_said() -> None:
    told = text({**report(thread(python=[])), "python": None, "notes": ["It is 3.9."]}, source)
    assert told.endswith("It is 3.9.")
    assert "CPython" not in told
