"""Where the control socket is: the first directory that works, or the path that is named, or nowhere."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn.arbiter.control import bound_socket
from tricorn.arbiter.control.bound_socket import BoundSocket

from tests.unit.arbiter.log import Log


class Sockets:
    """A directory for the sockets of one test."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.log = root, Messages()
        self.environ = {"TMPDIR": str(root)}
        self.opened: list[BoundSocket] = []
        # Root has /run/tricorn besides, which is everybody's here.
        monkeypatch.setattr(bound_socket.os, "geteuid", lambda: UID)
        monkeypatch.setattr(bound_socket, "automatic", self.automatic)
        self._automatic = automatic

    def automatic(self, environ: dict[str, str], uid: int) -> list[object]:
        return [each for each in self._automatic(environ, uid) if each.path != "/run/tricorn"]

    def bind(
        self, wanted: str = "auto", mode: int = 0o600, name: str | None = None, *, successor: bool = False
    ) -> BoundSocket | None:
        bound = bound_socket.bind(wanted, mode, name=name, environ=self.environ, is_successor=successor, log=self.log)
        if bound is not None:
            self.opened.append(bound)
        return bound


class Messages(Log):
    def debug(self, message: str, /, *arguments: object) -> None:
        self.append(f"debug: {message % arguments}")

    def warning(self, message: str, /, *arguments: object) -> None:
        self.append(f"warning: {message % arguments}")


automatic = bound_socket.automatic
UID = os.geteuid()


@pytest.fixture
def sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sockets]:
    made = Sockets(tmp_path, monkeypatch)
    yield made
    for bound in made.opened:
        bound.remove()
        bound.socket.close()


def test_it_is_called_by_the_pid_in_a_directory_of_the_users_own(sockets: Sockets, tmp_path: Path) -> None:
    bound = sockets.bind()
    assert bound is not None
    directory = tmp_path / f"tricorn-{UID}"
    assert bound.path == str(directory / f"{os.getpid()}.ctl")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(os.stat(bound.path).st_mode) == 0o600
    bound.remove()
    assert list(directory.iterdir()) == []


def test_the_first_that_works_is_taken(sockets: Sockets, tmp_path: Path) -> None:
    service, session = tmp_path / "service", tmp_path / "session"
    service.mkdir(mode=0o755)
    session.mkdir(mode=0o700)
    sockets.environ |= {"RUNTIME_DIRECTORY": f"{service}:/other", "XDG_RUNTIME_DIR": str(session)}
    first, second = sockets.bind(), sockets.bind()
    assert first is not None
    assert second is not None
    assert first.path == str(service / "control")
    assert second.path == str(session / "tricorn" / f"{os.getpid()}.ctl"), "the first listens there already"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o707, 0o702, 0o1777])
def test_a_directory_that_others_can_write_is_not_used(sockets: Sockets, tmp_path: Path, mode: int) -> None:
    open_to_all = tmp_path / f"tricorn-{UID}"
    open_to_all.mkdir()
    open_to_all.chmod(mode)
    assert sockets.bind() is None
    assert sockets.log == [f"debug: No control socket: {open_to_all} can be written by other users."]


def test_a_link_in_the_place_of_the_directory_is_not_followed(sockets: Sockets, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / f"tricorn-{UID}").symlink_to(tmp_path / "elsewhere")
    assert sockets.bind() is None


def test_another_users_directory_is_not_used(sockets: Sockets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"tricorn-{UID + 1}").mkdir(mode=0o700)
    monkeypatch.setattr(bound_socket.os, "geteuid", lambda: UID + 1)
    assert sockets.bind() is None
    assert f"belongs to user {UID}, not to {UID + 1}" in sockets.log[0]


def test_where_nothing_can_be_made_there_is_one_line_for_who_debugs(sockets: Sockets) -> None:
    sockets.environ = {"TMPDIR": "/proc", "XDG_RUNTIME_DIR": "/nonexistent"}
    assert sockets.bind() is None
    assert len(sockets.log) == 1
    assert sockets.log[0].startswith("debug: No control socket: ")


def test_a_path_that_is_too_long_is_not_used(sockets: Sockets, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    sockets.environ = {"TMPDIR": str(deep)}
    assert sockets.bind() is None
    named = sockets.bind(str(deep / "control"))
    assert named is None
    assert sockets.log[-1].startswith(
        f"warning: Cannot create the control socket {deep / 'control'}; continuing without one"
    )


def test_a_path_that_is_named_is_taken_with_its_mode(sockets: Sockets, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        bound = sockets.bind(str(tmp_path / "shop.ctl"), mode=0o660)
    finally:
        assert os.umask(before) == 0o077
    assert bound is not None
    assert stat.S_IMODE(os.stat(bound.path).st_mode) == 0o660


def test_what_a_killed_server_has_left_is_removed_and_nothing_else(sockets: Sockets, tmp_path: Path) -> None:
    path = tmp_path / "shop.ctl"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert sockets.bind(str(path)) is not None
    assert sockets.bind(str(path)) is None, "the first one listens there"
    (tmp_path / "file").write_text("mine")
    assert sockets.bind(str(tmp_path / "file")) is None
    assert (tmp_path / "file").read_text() == "mine"


def test_a_start_removes_what_killed_servers_have_left(sockets: Sockets, tmp_path: Path) -> None:
    directory = tmp_path / f"tricorn-{UID}"
    directory.mkdir(mode=0o700)
    dead, lives, other = directory / f"{2**22 + 1}.ctl", directory / f"{2**22 + 2}.ctl", directory / "shop.ctl"
    with socket.socket(socket.AF_UNIX) as left, socket.socket(socket.AF_UNIX) as listening:
        left.bind(str(dead))
        listening.bind(str(lives))
        listening.listen()
        other.write_text("no socket of a pid")
        assert sockets.bind() is not None
        assert sorted(path.name for path in directory.iterdir()) == sorted(
            [f"{os.getpid()}.ctl", lives.name, other.name]
        ), "one that listens is of another container"


def test_a_successor_takes_the_name_when_its_predecessor_has_left_it(sockets: Sockets, tmp_path: Path) -> None:
    path = str(tmp_path / "shop.ctl")
    old, new = sockets.bind(path), sockets.bind(path, successor=True)
    assert old is not None
    assert new is not None
    assert new.path == f"{path}.2"
    old.remove()
    new.promote()
    assert new.path == path
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    new.remove()
    assert not os.path.exists(path)


def test_one_that_was_replaced_does_not_remove_its_successors(sockets: Sockets, tmp_path: Path) -> None:
    path = str(tmp_path / "shop.ctl")
    old, new = sockets.bind(path), sockets.bind(path, successor=True)
    assert old is not None
    assert new is not None
    new.promote()
    old.remove()
    assert os.path.exists(path)


def test_a_name_is_a_link_to_the_newest(sockets: Sockets, tmp_path: Path) -> None:
    directory = tmp_path / f"tricorn-{UID}"
    bound = sockets.bind(name="shop")
    assert bound is not None
    assert os.readlink(directory / "shop.ctl") == f"{os.getpid()}.ctl"
    (directory / "shop.ctl").unlink()
    (directory / "shop.ctl").symlink_to("4711.ctl")
    bound.remove()
    assert os.readlink(directory / "shop.ctl") == "4711.ctl", "another server's by then"


def test_a_name_comes_back_from_a_successor_that_is_gone(sockets: Sockets, tmp_path: Path) -> None:
    link = tmp_path / f"tricorn-{UID}" / "shop.ctl"
    bound = sockets.bind(name="shop")
    assert bound is not None
    link.unlink()
    link.symlink_to("4711.ctl")
    bound.take_name_back()
    assert os.readlink(link) == "4711.ctl"
    link.unlink()
    bound.take_name_back()
    assert os.readlink(link) == f"{os.getpid()}.ctl"


@pytest.mark.parametrize("name", ["a/b", "../x", ".hidden", "4711", ""])
def test_a_name_that_is_no_file_name_has_none(sockets: Sockets, tmp_path: Path, name: str) -> None:
    assert sockets.bind(name=name) is not None
    assert len(list((tmp_path / f"tricorn-{UID}").iterdir())) == 1


def test_a_server_that_has_just_begun_keeps_its_name(sockets: Sockets, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sockets.root / "ctl"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        monkeypatch.setattr(bound_socket.time, "sleep", lambda _: other.listen())
        assert sockets.bind(str(path)) is None
        assert path.exists()
    assert "another server listens on it" in sockets.log[-1]
