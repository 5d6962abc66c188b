"""The directory of prometheus_client's multiprocess mode: what is removed, and under which names is counted."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn import import_hooks
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.metrics import identity
from tricorn.metrics.application import OLD_VARIABLE, VARIABLE, AppMetrics, prepare
from tricorn.metrics.identity import Identity

CONFIG: Any = resolve([])


@pytest.fixture(autouse=True)
def _no_hook_stays() -> Iterator[None]:
    yield
    import_hooks.after("metrics", {})


def prepared(directory: Path, *, fresh: bool = True) -> AppMetrics:
    metrics, warnings = prepare(CONFIG, {VARIABLE: str(directory)}, fresh=fresh)
    assert metrics is not None, warnings
    assert warnings == []
    return metrics


def test_nothing_is_done_unless_it_is_asked_for(tmp_path: Path) -> None:
    assert prepare(CONFIG, {}, fresh=True) == (None, [])
    off: Any = resolve([Layer({"metrics_app": Raw("off", "test")})])
    assert prepare(off, {VARIABLE: str(tmp_path / "no")}, fresh=True) == (None, [])
    assert list(tmp_path.iterdir()) == []


def test_a_fresh_start_makes_the_directory_and_removes_the_librarys_files_alone(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "metrics"
    first, warnings = prepare(CONFIG, {OLD_VARIABLE: str(directory)}, fresh=True)
    assert first is not None
    assert warnings == []
    os.close(first.descriptor)
    (directory / "counter.db").mkdir()
    for name in ("counter_1.db", "gauge_livesum_2.db", "histogram_3.db", "notes.db", "counter_1.txt"):
        (directory / name).write_bytes(b"")
    os.close(prepared(directory).descriptor)
    assert sorted(entry.name for entry in directory.iterdir()) == ["counter.db", "counter_1.txt", "notes.db"]


def test_a_successor_removes_nothing_and_names_its_files_differently(tmp_path: Path) -> None:
    first = prepared(tmp_path)
    (tmp_path / "counter_1.db").write_bytes(b"")
    second = prepared(tmp_path, fresh=False)
    assert (tmp_path / "counter_1.db").exists()
    assert (first.suffix, second.suffix) == ("", "b")
    os.close(first.descriptor)
    third = prepared(tmp_path, fresh=False)
    assert third.suffix == ""
    os.close(second.descriptor)
    os.close(third.descriptor)


def test_a_directory_that_another_server_uses_is_left_alone(tmp_path: Path) -> None:
    first = prepared(tmp_path)
    (tmp_path / "counter_1.db").write_bytes(b"")
    metrics, (warning,) = prepare(CONFIG, {VARIABLE: str(tmp_path)}, fresh=True)
    assert metrics is None
    assert "another server" in warning
    assert (tmp_path / "counter_1.db").exists()
    os.close(first.descriptor)


def test_a_directory_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777 | stat.S_ISVTX)
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").write_text("")
    for name, reason in [("shared", "temporary files of all users"), ("link", ""), ("file", "Not a directory")]:
        metrics, (warning,) = prepare(CONFIG, {VARIABLE: str(tmp_path / name)}, fresh=True)
        assert metrics is None
        assert reason in warning
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    other = tmp_path / "other"
    other.mkdir()
    os.chown(other, 12345, 12345)
    metrics, (warning,) = prepare(CONFIG, {VARIABLE: str(other)}, fresh=True)
    assert metrics is None
    assert "user 12345" in warning


def test_the_end_of_a_worker_removes_its_live_gauges(tmp_path: Path) -> None:
    metrics = prepared(tmp_path)
    for name in ("gauge_liveall_1.db", "gauge_livesum_1.db", "gauge_livemax_2.db", "gauge_sum_1.db", "counter_1.db"):
        (tmp_path / name).write_bytes(b"")
    metrics.bury(1)
    left = sorted(entry.name for entry in tmp_path.iterdir())
    assert left == ["counter_1.db", "gauge_livemax_2.db", "gauge_sum_1.db"]
    os.close(metrics.descriptor)


def test_a_file_that_the_library_would_refuse_is_begun_anew(tmp_path: Path) -> None:
    metrics = prepared(tmp_path)
    broken = (100).to_bytes(4, sys.byteorder) + b"\xff" * 200
    for name in ("counter_1.db", "counter_11.db"):
        (tmp_path / name).write_bytes(broken)
    (tmp_path / "histogram_1.db").write_bytes(bytes(4096))
    warnings: list[str] = []
    metrics.adopt(1, warnings.append)
    (warning,) = warnings
    assert f"{tmp_path}/counter_1.db was corrupt" in warning
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["counter_11.db", "histogram_1.db"]


def test_values_are_named_after_the_process_that_counts() -> None:
    name = Identity("3")
    assert name() == "3"
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(writer, f"{name()} {os.getpid()}".encode())
        os._exit(0)
    os.waitpid(pid, 0)
    with os.fdopen(reader) as stream:
        os.close(writer)
        told, of = stream.read().split()
    assert told == of == str(pid)
    name.become("4")
    assert name() == "4"


PROGRAM = """\
import os, sys
from tricorn.metrics import identity

when, naming = sys.argv[1:]
if when == "before":
    import prometheus_client
if naming == "own":
    from prometheus_client import values
    values.ValueClass = values.MultiProcessValue(lambda: "own")
identity.install(identity.Identity("7"))
import prometheus_client

prometheus_client.Counter("a", "h").inc()
print(*sorted(os.listdir(os.environ["PROMETHEUS_MULTIPROC_DIR"])))
"""


@pytest.mark.parametrize(
    ("when", "naming", "files"),
    [("after", "ours", "counter_7.db"), ("before", "ours", "counter_7.db"), ("before", "own", "counter_own.db")],
)
def test_the_library_counts_under_that_name_unless_the_application_has_its_own(
    tmp_path: Path, when: str, naming: str, files: str
) -> None:
    environ = os.environ | {VARIABLE: str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM, when, naming]
    told = subprocess.run(command, env=environ, check=True, capture_output=True, text=True, timeout=60)
    assert told.stdout.split() == [files]


def test_the_last_identity_names_what_is_imported_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Identity("1"), Identity("2")
    identity.install(first)
    identity.install(second)
    monkeypatch.setattr(identity, "_is_default", lambda values: True)
    made = SimpleNamespace(MultiProcessValue=lambda process_identifier: process_identifier)
    for hook in import_hooks._hooks[identity.MODULE].values():
        hook(made)  # type: ignore[arg-type]  # a module in its place
    assert made.ValueClass is second
