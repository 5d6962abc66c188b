"""Whose pid a file may hold, and what happens to it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn.arbiter.pidfile import Pidfile, running
from tricorn.errors import ConfigError

from tests.harness import until
from tests.harness.child import in_child

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as other users")
OTHER = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.pid"


@pytest.fixture
def other() -> Iterator[int]:
    """The pid of a process of ours that runs."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


def found(path: Path) -> int | None:
    return running(str(path), str(path))


def test_it_holds_the_pid_and_everybody_may_read_it(path: Path) -> None:
    previous = os.umask(0o077)
    try:
        Pidfile(str(path)).create(4711)
    finally:
        os.umask(previous)
    assert path.read_text() == "4711\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(path.parent) == [path.name]


def test_a_server_that_runs_keeps_its_file(path: Path, other: int) -> None:
    path.write_text(f"{other}\n")
    pidfile = Pidfile(str(path))
    with pytest.raises(ConfigError) as caught:
        pidfile.create(4711)
    assert str(caught.value) == f"Already running on PID {other} (or pid file '{path}' is stale)"
    assert found(path) == other
    pidfile.unlink()
    assert path.read_text() == f"{other}\n"


@pytest.mark.parametrize("content", ["", "\n", "no number", "0", "-1", "1 2", "9" * 400, "\u0661", str(2**22)])
def test_what_is_no_pid_of_a_process_is_stale(content: str, path: Path) -> None:
    path.write_text(content)
    assert found(path) is None
    Pidfile(str(path)).create(4711)
    assert path.read_text() == "4711\n"


def test_our_own_pid_from_a_former_life_is_stale(path: Path) -> None:
    """In a container the server has the same small pid each time."""
    path.write_text(str(os.getpid()))
    pidfile = Pidfile(str(path))
    pidfile.create(os.getpid())
    pidfile.unlink()
    assert not path.exists()


def test_a_dead_process_is_stale(path: Path, other: int) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        path.write_text(str(process.pid))
        until(lambda: Path(f"/proc/{process.pid}/stat").read_text().split()[2] == "Z", "a zombie")
        assert found(path) is None, "a zombie"
    assert found(path) is None, "no process"


def test_a_threads_number_is_stale(path: Path) -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        path.write_text(str(thread.native_id))
        assert found(path) is None
    finally:
        over.set()
        thread.join()


@as_root
class TestUsers:
    def test_a_pid_that_another_user_has_got_since_is_stale(self, path: Path, other: int) -> None:
        path.write_text(str(other))
        os.chown(path, OTHER, OTHER)
        assert found(path) is None

    def test_a_server_of_another_user_is_a_server(self, path: Path, other: int) -> None:
        path.write_text(str(other))
        open_to_all(path.parent)

        def ask() -> int | None:
            os.setuid(OTHER)
            return found(path)

        assert in_child(ask) == other

    def test_a_directory_that_is_not_ours(self, path: Path) -> None:
        open_to_all(path.parent)

        def create() -> str:
            os.setuid(OTHER)
            with pytest.raises(ConfigError) as caught:
                Pidfile(str(path)).create(1)
            return str(caught.value)

        assert in_child(create) == f"Cannot write the pidfile '{path}': Permission denied."


@pytest.mark.timeout(20)
def test_a_fifo_in_its_place_is_not_waited_for(path: Path) -> None:
    pidfile = Pidfile(str(path))
    pidfile.create(os.getpid())
    path.unlink()
    os.mkfifo(path)
    pidfile.unlink()
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert running(str(path), str(path)) is None


def open_to_all(directory: Path) -> None:
    """Makes it readable for other users: pytest's directories are its user's alone."""
    top = Path(tempfile.gettempdir())
    for each in (directory, *directory.parents):
        if top not in each.parents:
            break
        each.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing/server.pid", "server.pid': No such file or directory."),
        ("file/server.pid", "Not a directory."),
        ("directory", "Is a directory."),
    ],
)
def test_pidfile_that_cannot_be_created(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    with pytest.raises(ConfigError) as caught:
        Pidfile(str(tmp_path / name)).create(1)
    assert str(caught.value).startswith(("Cannot read the pidfile", "Cannot write the pidfile"))
    assert str(caught.value).endswith(reason)
    assert sorted(os.listdir(tmp_path)) == ["directory", "file"]


class TestRename:
    def test_pidfile_is_renamed(self, path: Path) -> None:
        pidfile = Pidfile(f"{path}.2")
        pidfile.create(4711)
        pidfile.rename(str(path))
        assert os.listdir(path.parent) == [path.name]
        assert path.read_text() == "4711\n"
        pidfile.unlink()
        assert os.listdir(path.parent) == []

    def test_it_stays_when_the_name_is_taken(self, path: Path, other: int) -> None:
        path.write_text(str(other))
        pidfile = Pidfile(f"{path}.2")
        pidfile.create(4711)
        with pytest.raises(ConfigError, match="Already running"):
            pidfile.rename(str(path))
        assert Path(f"{path}.2").read_text() == "4711\n"
        assert pidfile.path == f"{path}.2"

    def test_the_same_name_is_no_move(self, path: Path) -> None:
        pidfile = Pidfile(str(path))
        pidfile.create(4711)
        pidfile.rename(str(path))
        assert path.read_text() == "4711\n"


class TestUnlink:
    def test_a_successors_file_is_left_alone(self, path: Path) -> None:
        pidfile = Pidfile(str(path))
        pidfile.create(4711)
        path.write_text("4712\n")
        pidfile.unlink()
        assert path.exists()

    def test_nothing_to_remove_is_no_error(self, path: Path) -> None:
        pidfile = Pidfile(str(path))
        pidfile.unlink()
        pidfile.create(4711)
        path.unlink()
        pidfile.unlink()

    def test_the_directory_may_change_meanwhile(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(path.parent)
        pidfile = Pidfile(path.name)
        pidfile.create(4711)
        monkeypatch.chdir("/")
        pidfile.unlink()
        assert not path.exists()
