"""The command of a successor, and what it is handed over. The starts are real."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tricorn.arbiter import reexec
from tricorn.arbiter.reexec import Command, inherited, plan
from tricorn.config.registry import meant_by
from tricorn.errors import ConfigError


class TestPlan:
    @pytest.mark.parametrize(
        ("argv", "orig_argv", "args"),
        [
            # a console script: the kernel passes its path on to the interpreter
            (["/v/bin/tricorn", "app"], ["/v/bin/python", "/v/bin/tricorn", "app"], ["/v/bin/tricorn", "app"]),
            # -m: sys.argv[0] is the path of __main__.py
            (["/s/tricorn/__main__.py", "app"], ["python", "-m", "tricorn", "app"], ["-m", "tricorn", "app"]),
            (["/s/tricorn/__main__.py", "app"], ["python", "-mtricorn", "app"], ["-mtricorn", "app"]),
            # options of the interpreter
            (
                ["t", "app"],
                ["python3", "-X", "dev", "-W", "error", "t", "app"],
                ["-X", "dev", "-W", "error", "t", "app"],
            ),
            (["-c", "app"], ["python", "-c", "import x", "app"], ["-c", "import x", "app"]),
            # an embedding program
            (["/v/bin/tricorn", "app"], [], ["/v/bin/tricorn", "app"]),
        ],
    )
    def test_the_interpreters_command_line_is_repeated(
        self, argv: list[str], orig_argv: list[str], args: list[str]
    ) -> None:
        command = plan("/v/bin/python", argv, orig_argv, "/srv", {"A": "1"})
        assert command == Command("/v/bin/python", ("/v/bin/python", *args), "/srv", {"A": "1"})

    @pytest.mark.parametrize("argv", [[""], ["-", "app"]])
    def test_a_program_from_stdin_cannot_be_repeated(self, argv: list[str], capfd: pytest.CaptureFixture[str]) -> None:
        """Which is no reason not to serve: it matters when a successor is asked for."""
        command = plan("/v/bin/python", argv, ["python", *argv], "/srv", {})
        pid = reexec.start(
            command, [], systemd=False, signals=(), before_exec=nothing, failed=lambda error: os.write(1, b"%r" % error)
        )
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
        assert "the program was read from standard input and cannot be read again" in capfd.readouterr().out

    def test_a_former_handover_is_not_passed_on(self) -> None:
        environ = dict.fromkeys(
            [reexec.PID, reexec.FDS, reexec.SECRETS, "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "KEPT"], "1"
        )
        assert plan("python", ["t"], ["python", "t"], "/", environ).environ == {"KEPT": "1"}

    @pytest.mark.parametrize("how", ["module", "script", "code"])
    def test_of_a_real_interpreter(self, how: str, tmp_path: Path) -> None:
        """Once started by the operator, once by the plan: both are the same program."""
        program = "import json, sys; print(json.dumps([sys.executable, sys.argv, sys.orig_argv, sys.path, __name__]))"
        (tmp_path / "prog").mkdir()
        (tmp_path / "prog" / "__main__.py").write_text(program)
        (tmp_path / "script").write_text(program)
        argv = {"module": ["-m", "prog"], "script": ["script"], "code": ["-c", program]}[how]

        def run(args: list[str]) -> list[Any]:
            output = subprocess.run([*args], cwd=tmp_path, capture_output=True, check=True).stdout
            facts: list[Any] = json.loads(output)
            return facts

        first = run([sys.executable, *argv, "-b", "x"])
        again = run(list(plan(first[0], first[1], first[2], str(tmp_path), {}).args))
        assert again == first


class TestInherited:
    def test_nobodys_successor(self) -> None:
        environ = {"A": "1", reexec.FDS: "3"}
        assert inherited(environ) is None
        assert environ == {"A": "1"}

    @pytest.mark.parametrize(("fds", "numbers"), [("3", [3]), ("3,7", [3, 7]), ("", []), (None, [])])
    def test_the_variables_are_read_and_removed(self, fds: str | None, numbers: list[int]) -> None:
        environ = {"A": "1", reexec.PID: "42"} | ({} if fds is None else {reexec.FDS: fds})
        assert inherited(environ) == reexec.Handover(42, numbers)
        assert environ == {"A": "1"}

    @pytest.mark.parametrize(("pid", "fds"), [("x", "3"), ("1", "x"), ("", "3")])
    def test_what_nobody_wrote(self, pid: str, fds: str) -> None:
        with pytest.raises(ConfigError, match="Remove them from the environment"):
            inherited({reexec.PID: pid, reexec.FDS: fds})

    @pytest.mark.parametrize("name", [reexec.PID, reexec.FDS, reexec.SECRETS])
    def test_no_variable_looks_like_a_misspelt_setting(self, name: str) -> None:
        assert not list(meant_by(name.removeprefix("TRICORN_")))


# Says what it was given, as JSON.
SUCCESSOR = """
import json, os, signal, socket, sys
names = {k: v for k, v in os.environ.items() if k.startswith(("TRICORN_UPGRADE", "LISTEN_", "WATCHDOG_", "OWN"))}
fds = [int(fd) for fd in names.get("TRICORN_UPGRADE_FDS", "").split(",") if fd]
fds = fds or [3 + number for number in range(int(names.get("LISTEN_FDS", 0)))]
mask = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
ports = [socket.socket(fileno=fd).getsockname()[1] for fd in fds]
print(json.dumps([os.getpid(), os.getcwd(), names, ports, mask, sys.argv[1:]]))
"""
SIGNALS = (signal.SIGHUP, signal.SIGUSR2)


def nothing(*_: object) -> None:
    pass


@pytest.fixture
def listeners() -> Iterator[list[socket.socket]]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    yield sockets
    for sock in sockets:
        sock.close()


def start(
    tmp_path: Path,
    fds: list[int],
    *,
    systemd: bool = False,
    program: str = sys.executable,
    before_exec: Callable[[], object] = nothing,
    failed: Callable[[BaseException], object] = nothing,
) -> tuple[int, int]:
    """Pid and exit status of a successor."""
    command = Command(
        program, (program, "-c", SUCCESSOR, "x"), str(tmp_path), {"OWN": "1", "PATH": "/bin", "WATCHDOG_PID": "1"}
    )
    pid = reexec.start(command, fds, systemd=systemd, signals=SIGNALS, before_exec=before_exec, failed=failed)
    _, status = os.waitpid(pid, 0)
    return pid, os.waitstatus_to_exitcode(status)


def test_the_successor_has_the_sockets_and_the_surroundings(
    listeners: list[socket.socket], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fds = [sock.fileno() for sock in listeners]
    pid, status = start(tmp_path, fds)
    assert status == 0
    names = {
        "OWN": "1",
        reexec.PID: str(os.getpid()),
        reexec.FDS: ",".join(map(str, fds)),
        "WATCHDOG_PID": str(pid),
    }
    ports = [sock.getsockname()[1] for sock in listeners]
    assert json.loads(capfd.readouterr().out) == [pid, str(tmp_path), names, ports, [], ["x"]]
    assert not any(sock.get_inheritable() for sock in listeners), "the predecessor's stay as they were"


def test_sockets_of_systemd_get_systemds_numbers(
    listeners: list[socket.socket], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fds = [sock.fileno() for sock in reversed(listeners)]
    pid, status = start(tmp_path, fds, systemd=True)
    assert status == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer[2] == {
        "OWN": "1",
        reexec.PID: str(os.getpid()),
        "LISTEN_PID": str(pid),
        "LISTEN_FDS": "3",
        "WATCHDOG_PID": str(pid),
    }
    assert answer[3] == [sock.getsockname()[1] for sock in reversed(listeners)]


HEIR = """
import os, socket, sys
from tricorn.arbiter import reexec
systemd = range(3, 3 + int(os.environ.get("LISTEN_FDS", 0)))
found = reexec.inherited(os.environ)
ports = [socket.socket(fileno=fd).getsockname()[1] for fd in found.listeners or systemd]
print(found.secrets.decode(), ports, [name for name in os.environ if name.startswith("TRICORN_UPGRADE")])
"""


@pytest.mark.parametrize("systemd", [False, True])
def test_secrets_are_in_no_variable_and_stay_out_of_the_way_of_the_sockets(
    systemd: bool, listeners: list[socket.socket], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = Command(sys.executable, (sys.executable, "-c", HEIR), str(tmp_path), dict(os.environ))
    before = set(os.listdir("/proc/self/fd"))
    pid = reexec.start(
        command,
        [sock.fileno() for sock in listeners],
        secrets=b"hush",
        systemd=systemd,
        signals=(),
        before_exec=nothing,
        failed=nothing,
    )
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    ports = [sock.getsockname()[1] for sock in listeners]
    assert capfd.readouterr().out == f"hush {ports} []\n"
    assert set(os.listdir("/proc/self/fd")) == before


def test_secrets_that_did_not_arrive_are_none() -> None:
    found = inherited({reexec.PID: "42", reexec.SECRETS: "999999"})
    assert found == reexec.Handover(42, [], b"")


def test_a_hook_runs_in_the_child_before(
    listeners: list[socket.socket], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pid, status = start(tmp_path, [], before_exec=lambda: os.write(1, b"%d " % os.getpid()))
    assert status == 0
    assert capfd.readouterr().out.startswith(f"{pid} [{pid}, ")


def test_a_hook_that_fails_ends_the_child(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def hook() -> None:
        sys.exit(7)

    assert start(tmp_path, [], before_exec=hook, failed=lambda error: os.write(1, repr(error).encode()))[1] == 1
    assert capfd.readouterr().out == "SystemExit(7)"


@pytest.mark.parametrize("systemd", [False, True])
def test_a_program_that_is_not_there_ends_the_child(
    systemd: bool, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def failed(error: BaseException) -> None:
        os.write(1, type(error).__name__.encode())

    assert start(tmp_path, [], systemd=systemd, program="/no/such/python", failed=failed)[1] == 1
    assert capfd.readouterr().out == "FileNotFoundError"


def test_a_report_that_fails_ends_the_child_too(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def failed(_: BaseException) -> None:
        raise RuntimeError

    assert start(tmp_path, [], program="/no/such/python", failed=failed)[1] == 1


def test_signals_to_the_child_do_not_reach_the_parents_pipe(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    previous = signal.signal(signal.SIGUSR2, nothing)
    signal.set_wakeup_fd(write_end)
    try:
        status = start(tmp_path, [], before_exec=lambda: os.kill(os.getpid(), signal.SIGUSR2))[1]
        assert status == -signal.SIGUSR2
        assert select.select([read_end], [], [], 0)[0] == []
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGUSR2, previous)
        os.close(read_end)
        os.close(write_end)
