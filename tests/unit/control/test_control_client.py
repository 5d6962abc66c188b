"""The client: which server is meant, and what it makes of answers and silence."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tricorn.control import client
from tricorn.control.client import Control, ControlError, NoAnswer, NoServer, Refused, find
from tricorn.control.socket_path import automatic, refusal


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory that is looked at."""
    monkeypatch.delenv(client.VARIABLE, raising=False)
    monkeypatch.setattr(client, "looked_at", lambda: [str(tmp_path)])
    return tmp_path


class Fake:
    """A server that answers each line with the next of `lines`, and closes after the last."""

    def __init__(self, path: Path, lines: list[bytes]) -> None:
        self.path, self.asked = path, list[bytes]()
        self._lines = lines
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as reader:
                for line in self._lines:
                    asked = reader.readline()
                    if not asked:
                        break
                    self.asked.append(asked)
                    connection.sendall(line)
                else:
                    # Not by close(2): with a request that is not read, the client would hear of a reset.
                    connection.shutdown(socket.SHUT_WR)
                    reader.read()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Callable[..., Fake]]:
    made: list[Fake] = []

    def make(*lines: bytes, name: str = "1.ctl") -> Fake:
        made.append(Fake(tmp_path / name, list(lines)))
        return made[-1]

    yield make
    for each in made:
        each.close()


class TestFind:
    def test_the_path_that_is_given(self, home: Path) -> None:
        (home / "x").touch()
        assert find(str(home / "x"), None) == home / "x"
        with pytest.raises(NoServer, match=f"No control socket at {home}/y"):
            find(str(home / "y"), None)

    def test_the_variable_unless_it_is_auto(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (home / "x").touch()
        monkeypatch.setenv(client.VARIABLE, str(home / "x"))
        assert find(None, None) == home / "x"
        monkeypatch.setenv(client.VARIABLE, "auto")
        with pytest.raises(NoServer):
            find(None, None)

    def test_control_socket_by_name(self, home: Path) -> None:
        (home / "shop.ctl").touch()
        assert find(None, "shop") == home / "shop.ctl"
        with pytest.raises(NoServer, match=f"looked for blog.ctl in {home}"):
            find(None, "blog")

    def test_control_socket_of_the_only_live_server(self, home: Path, fake: Callable[..., Fake]) -> None:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(home / "9.ctl"))
        with pytest.raises(NoServer, match=f"looked in {home}"):
            find(None, None)
        fake(name="1.ctl")
        (home / "shop.ctl").symlink_to("1.ctl")
        assert find(None, None) == home / "1.ctl"
        fake(name="2.ctl")
        with pytest.raises(
            NoServer,
            match=r"Several servers .* lists them\. Select one with --socket: \S+/1.ctl, \S+/2.ctl",
        ):
            find(None, None)


def test_only_directories_that_others_cannot_write_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / f"tricorn-{os.geteuid()}"
    mine.mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert str(mine) in client.looked_at()
    mine.chmod(0o777)
    assert str(mine) not in client.looked_at()


def test_only_dead_sockets_of_ones_own_are_removed(
    home: Path, fake: Callable[..., Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(name="1.ctl")
    (home / "file.ctl").write_text("no socket")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(home / "9.ctl"))
    found = {Path(each.path).name: each for each in client.sockets([str(home)])}
    assert {name: each.alive for name, each in found.items()} == {"1.ctl": True, "9.ctl": False}
    with monkeypatch.context() as other:
        other.setattr(client.os, "geteuid", lambda: os.getuid() + 1)
        client.remove_dead(found["9.ctl"])
    assert (home / "9.ctl").exists()
    for each in found.values():
        client.remove_dead(each)
    assert sorted(path.name for path in home.iterdir()) == ["1.ctl", "file.ctl"]


def test_a_result_is_a_result_and_a_refusal_an_exception(fake: Callable[..., Fake]) -> None:
    server = fake(
        b'{"event":"spawned"}\n{"id":9,"ok":true,"result":{}}\n{"id":1,"ok":true,"result":{"pid":7}}\n',
        b'{"id":2,"ok":false,"kind":"denied","error":"You may only look."}\n',
        b"[]\n",
    )
    with Control.connect(server.path, 10) as control:
        assert control.ask("status") == {"pid": 7}
        with pytest.raises(Refused, match=r"^You may only look\.$") as caught:
            control.ask("scale", workers=6)
        assert caught.value.kind == "denied"
        assert json.loads(server.asked[1]) == {"id": 2, "do": "scale", "workers": 6}
        with pytest.raises(ControlError, match="is not a control socket of tricorn"):
            control.ask("status")
        with pytest.raises(NoAnswer, match="closed the connection"):
            control.ask("status")


def test_silence_has_an_end(fake: Callable[..., Fake]) -> None:
    server = fake(b"", b"")
    with Control.connect(server.path, 0.05) as control, pytest.raises(NoAnswer, match=r"not answer within 0\.05 s"):
        control.ask("status")


def test_where_no_server_listens_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(NoServer, match="No such file or directory"):
        Control.connect(tmp_path / "x")


def test_pages_that_do_not_fit_their_answer_are_refused_and_their_descriptors_closed(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        descriptors = [os.dup(file.fileno()) for _ in range(3)]
    with pytest.raises(ControlError, match="Could not parse the server's answer"):
        client.Pages({"layout": 5, "size": 4096}, descriptors)
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_a_server_that_begins_to_listen_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ctl"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        with pytest.raises(NoServer, match="refused"):
            Control.connect(path)
        monkeypatch.setattr(client.time, "sleep", lambda _: server.listen())
        Control.connect(path).close()


def test_each_page_is_where_its_number_says() -> None:
    size, count = 4096, 3
    descriptors = []
    for name, length in (("region", size * count), ("group", 64), ("ledger", 64)):
        descriptors.append(os.memfd_create(name))
        os.ftruncate(descriptors[-1], length)
    for number in range(count):
        os.pwrite(descriptors[0], bytes([number]) * size, number * size)
    answer = {"layout": 1, "size": size, "count": count, "group_bytes": 64, "ledger_bytes": 64, "workers": []}
    pages = client.Pages(answer, descriptors)
    assert len(pages.region) == size * count
    for number in range(count):
        assert bytes(pages.page(number)) == bytes([number]) * size


@pytest.mark.parametrize("timeout", [0, 0.9, 60])
def test_an_answer_in_time_is_taken_and_zero_seconds_are_without_end(fake: Callable[..., Fake], timeout: float) -> None:
    server = fake(b'{"event":"spawned"}\n{"id":1,"ok":true,"result":{}}\n')
    with Control.connect(server.path, timeout) as control:
        assert control.ask("status") == {}


@pytest.mark.parametrize(
    ("path", "name", "variable", "runtime", "named"),
    [
        (None, None, "", "", False),
        (None, None, "auto", "", False),
        ("/run/x", None, "", "", True),
        (None, "shop", "", "", True),
        (None, None, "/run/x", "", True),
        (None, None, "", "/run/shop", True),
        (None, None, "", "run/shop", False),
    ],
)
def test_which_server_is_meant_is_said_by_the_command_the_variable_or_the_service(
    path: str | None, name: str | None, variable: str, runtime: str, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(client.VARIABLE, variable)
    monkeypatch.setenv("RUNTIME_DIRECTORY", runtime)
    assert client.is_named(path, name) is named


def test_only_root_looks_in_the_systems_directory() -> None:
    assert [each.path for each in automatic({}, 0)] == ["/run/tricorn", "/tmp/tricorn-0"]
    assert [each.path for each in automatic({}, 1)] == ["/tmp/tricorn-1"]


def test_a_directory_that_is_not_there_is_refused_with_its_reason(tmp_path: Path) -> None:
    assert refusal(str(tmp_path / "x"), os.getuid()) == f"{tmp_path / 'x'}: No such file or directory"


def test_only_sockets_that_are_named_so_are_control_sockets(home: Path) -> None:
    kept = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    for each, name in zip(kept, ("1.ctl", "control", "apple", "zebra"), strict=True):
        each.bind(str(home / name))
    assert [os.path.basename(found.path) for found in client.sockets([str(home)])] == ["1.ctl", "control"]
    for each in kept:
        each.close()
