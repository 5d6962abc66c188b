"""Changes of real files, seen by both engines."""

from __future__ import annotations

import _thread
import importlib
import importlib.util
import os
import queue
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.errors import ConfigError
from tricorn.workers import reloader
from tricorn.workers.reloader import Files, Reloader

from tests.harness import until

HAS_WATCHFILES = importlib.util.find_spec("watchfiles") is not None
needs_watchfiles = pytest.mark.skipif(not HAS_WATCHFILES, reason="watchfiles is not installed")
WITHIN = 60.0


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    before = _thread._count()
    yield
    until(lambda: _thread._count() == before, "the watch has ended")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory to import from."""
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    before = set(sys.modules)
    yield directory
    for name in set(sys.modules) - before:
        del sys.modules[name]


def load(directory: Path, name: str) -> Path:
    path = directory / f"{name}.py"
    path.write_text("version = 1\n")
    importlib.invalidate_caches()
    importlib.import_module(name)
    return path


Watch = Callable[..., "tuple[Reloader, queue.Queue[str]]"]


@pytest.fixture(params=["poll", pytest.param("inotify", marks=needs_watchfiles)])
def watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Starts a reloader; what it reports comes out of the queue."""
    monkeypatch.setattr(reloader, "INTERVAL", 0.1)
    monkeypatch.setattr(reloader, "POLL", 0.1)
    monkeypatch.setattr(reloader, "QUIET", 0.05)
    started: list[Reloader] = []

    def start(*extra: object) -> tuple[Reloader, queue.Queue[str]]:
        reports: queue.Queue[str] = queue.Queue()
        started.append(reloader.start([str(path) for path in extra], request.param, reports.put))
        return started[-1], reports

    yield start
    for each in started:
        each.stop()


class TestChanges:
    def test_a_module_that_is_written(self, watch: Watch, package: Path) -> None:
        path = load(package, "reloaded_written")
        _, reports = watch()
        path.write_text("version = 22\n")
        assert reports.get(timeout=WITHIN) == str(path)

    def test_a_module_that_is_replaced_by_rename(self, watch: Watch, package: Path) -> None:
        path = load(package, "reloaded_renamed")
        _, reports = watch()
        new = package / ".reloaded_renamed.py.swp"
        new.write_text("version = 22\n")
        new.rename(path)
        assert reports.get(timeout=WITHIN) == str(path)

    def test_a_module_that_is_removed_and_written_again(self, watch: Watch, package: Path) -> None:
        path = load(package, "reloaded_removed")
        _, reports = watch()
        path.unlink()
        path.write_text("version = 22\n")
        assert reports.get(timeout=WITHIN) == str(path)

    def test_an_older_version_that_is_put_back(self, watch: Watch, package: Path) -> None:
        path = load(package, "reloaded_older")
        _, reports = watch()
        os.utime(path, (1, 1))
        assert reports.get(timeout=WITHIN) == str(path)

    def test_a_module_that_is_imported_later(self, watch: Watch, package: Path) -> None:
        running, reports = watch()
        path = load(package, "reloaded_later")
        until(lambda: str(path) in running._files._looks, "the module was looked at")
        path.write_text("version = 22\n")
        assert reports.get(timeout=WITHIN) == str(path)

    def test_a_module_that_is_imported_and_written_again_at_once(self, watch: Watch, package: Path) -> None:
        running, reports = watch()
        path = load(package, "reloaded_at_once")
        running.note_modules()
        path.write_text("version = 22\n")
        assert reports.get(timeout=WITHIN) == str(path)

    def test_a_module_in_a_directory_that_is_exchanged(self, watch: Watch, package: Path) -> None:
        inner = package / "inner"
        inner.mkdir()
        path = inner / "reloaded_exchanged.py"
        path.write_text("version = 1\n")
        spec = importlib.util.spec_from_file_location("reloaded_exchanged", path)
        assert spec is not None
        sys.modules["reloaded_exchanged"] = importlib.util.module_from_spec(spec)
        _, reports = watch()
        shutil.copytree(inner, package / "next")
        inner.rename(package / "previous")
        (package / "next").rename(inner)
        path.write_text("version = 22\n")
        assert reports.get(timeout=WITHIN) == str(path)

    def test_a_burst_is_reported_once(self, watch: Watch, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reloader, "QUIET", 0.4)
        paths = [load(package, f"reloaded_burst{number}") for number in range(20)]
        _, reports = watch()
        for path in paths:
            path.write_text("version = 22\n")
        assert reports.get(timeout=WITHIN) in map(str, paths)
        paths[0].write_text("version = 333\n")
        assert reports.get(timeout=WITHIN) == str(paths[0]), "and not one of the others again"

    def test_changes_without_end_are_reported(
        self, watch: Watch, package: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reloader, "LONGEST_BURST", 0.3)
        path = load(package, "reloaded_restless")
        _, reports = watch()

        def reported() -> bool:
            with open(path, "a") as stream:
                stream.write("#\n")
            return not reports.empty()

        until(reported, "a report", every=0.005)

    def test_after_the_end_nothing_is_reported(self, watch: Watch, package: Path) -> None:
        path = load(package, "reloaded_stopped")
        stopped, reports = watch()
        _, others = watch()
        stopped.stop()
        path.write_text("version = 22\n")
        assert others.get(timeout=WITHIN) == str(path)
        assert reports.empty()


class TestExtraFiles:
    def test_reloader_notices_an_extra_file(self, watch: Watch, tmp_path: Path) -> None:
        path = tmp_path / "settings.toml"
        path.write_text("a")
        _, reports = watch(path)
        path.write_text("bb")
        assert reports.get(timeout=WITHIN) == str(path)

    def test_a_file_that_comes(self, watch: Watch, tmp_path: Path) -> None:
        path = tmp_path / "settings.toml"
        _, reports = watch(path)
        path.write_text("a")
        assert reports.get(timeout=WITHIN) == str(path)

    def test_a_link_to_a_file_elsewhere(self, watch: Watch, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
        target.write_text("a")
        link.symlink_to(target)
        _, reports = watch(link)
        target.write_text("bb")
        assert reports.get(timeout=WITHIN) == str(link)

    def test_a_pattern_finds_what_changes_and_what_is_new(self, watch: Watch, tmp_path: Path) -> None:
        old, new = tmp_path / "a" / "old.html", tmp_path / "b" / "c" / "new.html"
        old.parent.mkdir()
        old.write_text("a")
        _, reports = watch(tmp_path / "**" / "*.html")
        old.write_text("bb")
        assert reports.get(timeout=WITHIN) == str(old)
        new.parent.mkdir(parents=True)
        (new.parent / "other.txt").write_text("not this")
        new.write_text("a")
        assert reports.get(timeout=WITHIN) == str(new)
        new.write_text("bb")
        assert reports.get(timeout=WITHIN) == str(new)

    def test_one_that_could_not_be_imported(self, watch: Watch, tmp_path: Path) -> None:
        path = tmp_path / "broken.py"
        path.write_text("(")
        running, reports = watch()
        running.add(str(path))
        path.write_text("mended = 1")
        assert reports.get(timeout=WITHIN) == str(path)


class TestFiles:
    def test_compiled_files_mean_their_source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "both.py").touch()
        for name in "both", "alone":
            module = ModuleType(name)
            module.__file__ = str(tmp_path / f"{name}.pyc")
            monkeypatch.setitem(sys.modules, f"reloaded_{name}", module)
        names = set(reloader._sources())
        assert str(tmp_path / "both.py") in names
        assert str(tmp_path / "alone.pyc") in names
        assert str(tmp_path / "both.pyc") not in names

    def test_strange_modules_do_no_harm(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Eager(ModuleType):
            def __getattr__(self, name: str) -> Any:
                raise RuntimeError("imported by looking at it")

        for number, strange in enumerate([Eager("eager"), None, 7]):
            monkeypatch.setitem(sys.modules, f"reloaded_strange{number}", strange)  # type: ignore[arg-type]
        nowhere = ModuleType("nowhere")
        nowhere.__file__ = None
        monkeypatch.setitem(sys.modules, "reloaded_nowhere", nowhere)
        assert Files([]).look() is None

    def test_a_file_that_is_away_for_a_moment_is_no_change(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_text("a")
        files = Files([str(path)])
        files.look()
        path.rename(tmp_path / "b")
        assert files.look() is None
        (tmp_path / "b").rename(path)
        assert files.look() is None

    def test_only_some_events_are_a_reason_to_look(self, tmp_path: Path) -> None:
        files = Files([str(tmp_path / "settings.toml")])
        files.look()
        assert files.concerns(str(tmp_path / "settings.toml"))
        assert not files.concerns(str(tmp_path / "server.log"))


def test_patterns_of_what_is_not_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "b.pyc", "build/c.py", "src/build/d.py", "src/generated/e.py", "src/f.tmp.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    files = Files([str(tmp_path / "**" / "*.py*")], ["*.pyc", "build", "generated/*", "*.tmp.py"])
    files.look()
    watched = {path for path in files._all() if path.startswith(str(tmp_path))}
    assert watched == {str(tmp_path / "a.py")}


class TestEngines:
    @pytest.mark.parametrize("engine", ["auto", "poll"])
    def test_which_need_nothing(self, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "watchfiles", None)
        reloader.check(engine)

    @pytest.mark.parametrize("engine", ["inotify", "watchfiles"])
    def test_one_that_is_asked_for_names_what_is_missing(self, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "watchfiles", None)
        for function in reloader.check, lambda engine: reloader.start([], engine, print):
            with pytest.raises(ConfigError, match=r"pip install 'tricorn\[reload\]', or use reload_engine poll."):
                function(engine)

    def test_the_log_says_that_it_polls_and_what_would_be_quicker(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def said(**values: object) -> str:
            return reloader.note(resolve([Layer({name: Raw(value, "a test") for name, value in values.items()})]))

        monkeypatch.setattr(reloader, "_has_watchfiles", lambda: False)
        assert f"every {reloader.POLL:g} s" in said(reload=True)
        assert "pip install 'tricorn[reload]'" in said(reload=True)
        assert not said()
        assert not said(reload=True, reload_engine="poll"), "it was asked for"
        monkeypatch.setattr(reloader, "_has_watchfiles", lambda: True)
        assert not said(reload=True)

    @needs_watchfiles
    def test_auto_is_quick_where_watchfiles_is_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        used: list[bool] = []
        monkeypatch.setattr(Reloader, "run", lambda self, by_events: used.append(by_events))
        reloader.start([], "auto", print)
        reloader.start([], "poll", print)
        until(lambda: len(used) == 2, "both have started")
        assert used == [True, False]

    @needs_watchfiles
    def test_without_watches_left_it_looks_every_second(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def watch(*_: object, **__: object) -> Iterator[set[object]]:
            raise OSError(28, "No space left on device")
            yield set()

        monkeypatch.setattr("watchfiles.watch", watch)
        monkeypatch.setattr(reloader, "INTERVAL", 0.05)
        path = tmp_path / "settings.toml"
        path.write_text("a")
        reports: queue.Queue[str] = queue.Queue()
        running = reloader.start([str(path)], "inotify", reports.put)
        path.write_text("bb")
        assert reports.get(timeout=WITHIN) == str(path)
        running.stop()

    @needs_watchfiles
    def test_an_event_is_seen_long_before_the_interval(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reloader, "INTERVAL", 60)
        path = tmp_path / "settings.toml"
        path.write_text("0")
        reports: queue.Queue[str] = queue.Queue()
        running = reloader.start([str(path)], "auto", reports.put)

        def reported() -> bool:
            path.write_text(str(time.monotonic_ns()))  # again, since the watch begins in its own time
            return not reports.empty()

        until(reported, "a report", every=0.2)
        running.stop()
