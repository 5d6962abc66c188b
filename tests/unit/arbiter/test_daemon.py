"""What is left of a process's surroundings once it is a daemon. In real processes: nothing else would prove it."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness import until

PROGRAM = """
import json, os, sys
from tricorn.arbiter.daemon import daemonize

out, keep, parent = sys.argv[1], sys.argv[2] == "keep", os.getpid()
log = open(out + ".log", "w")
for fd in json.loads(sys.argv[3]):
    os.close(fd)
sys.stdout.write("before ")  # stays in the buffer
daemonize(keep_stdio=keep)
try:
    os.write(1, b"after")
except OSError:
    pass
log.write("still open")
log.close()
names = [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)]
inheritable = [os.get_inheritable(fd) for fd in range(3)]
facts = dict(
    pid=os.getpid(), parent=parent, session=os.getsid(0), group=os.getpgrp(), umask=os.umask(0), names=names,
    inheritable=inheritable, sockets=[os.fstat(int(fd)).st_ino for fd in sys.argv[4:]],
)
with open(out + ".new", "w") as stream:
    json.dump(facts, stream)
os.rename(out + ".new", out)
"""


def run(tmp_path: Path, *, keep: bool = False, closed: tuple[int, ...] = (), **options: Any) -> dict[str, Any]:
    out = tmp_path / "facts"
    fds = options.get("pass_fds", ())
    argv = [sys.executable, "-c", PROGRAM, str(out), "keep" if keep else "-", json.dumps(closed), *map(str, fds)]
    assert subprocess.run(argv, check=False, timeout=20, **options).returncode == 0
    until(out.exists, "the daemon's facts")
    facts: dict[str, Any] = json.loads(out.read_text())
    return facts


def test_it_leads_no_session_and_nothing_of_its_parent(tmp_path: Path) -> None:
    facts = run(tmp_path)
    assert facts["pid"] != facts["parent"]
    assert facts["session"] not in (facts["pid"], os.getsid(0))
    assert facts["group"] == facts["session"]
    assert facts["umask"] == 0o22


def test_stdio_goes_to_dev_null_and_descriptors_survive(tmp_path: Path) -> None:
    with socket.socket() as listener, open(tmp_path / "out", "wb") as stdout:
        listener.listen()
        facts = run(tmp_path, stdout=stdout, stderr=stdout, pass_fds=(listener.fileno(),))
        assert facts["sockets"] == [os.fstat(listener.fileno()).st_ino]
    assert facts["names"] == ["/dev/null"] * 3
    assert facts["inheritable"] == [True] * 3
    assert (tmp_path / "out").read_text() == "before "
    assert (tmp_path / "facts.log").read_text() == "still open"


def test_stdio_may_be_kept_if_it_is_a_file(tmp_path: Path) -> None:
    with open(tmp_path / "out", "wb") as stdout:
        facts = run(tmp_path, keep=True, stdout=stdout, stderr=stdout)
    assert facts["names"] == ["/dev/null", f"{tmp_path}/out", f"{tmp_path}/out"]
    assert (tmp_path / "out").read_text() == "before after"


def test_but_not_a_terminal(tmp_path: Path) -> None:
    master, terminal = pty.openpty()
    try:
        facts = run(tmp_path, keep=True, stdin=terminal, stdout=terminal, stderr=terminal)
    finally:
        os.close(master)
        os.close(terminal)
    assert facts["names"] == ["/dev/null"] * 3


@pytest.mark.parametrize("keep", [False, True])
def test_closed_descriptors_are_filled(keep: bool, tmp_path: Path) -> None:
    facts = run(tmp_path, keep=keep, closed=(0, 2), stdout=subprocess.DEVNULL)
    assert facts["names"] == ["/dev/null"] * 3
    assert facts["inheritable"] == [True] * 3
