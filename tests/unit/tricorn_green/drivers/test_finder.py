"""The import hook: what the application imports is as it would be without it, and the treatment comes after."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tricorn import import_hooks
from tricorn.import_hooks import Finder, Loader
from tricorn.libraries import Library
from tricorn_green import drivers
from tricorn_green.drivers import finder
from tricorn_green.drivers.records import Blocks, Cooperative, Driver, Ground, Hook, line
from tricorn_green.drivers.table import DRIVERS

NAME = "some_driver"


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __getattr__(self, level: str) -> Any:
        return lambda text, *args: self.lines.append((level, text % args))


class Bench:
    """Hooks of one record, and modules that come and go."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = Log()
        self.treated: list[ModuleType] = []
        self.ground = Ground("gevent", self.log, None)  # type: ignore[arg-type]

    def treat(self, module: ModuleType, ground: Ground) -> None:
        assert ground is self.ground
        self.treated.append(module)

    def install(self, treatment: Any = None, name: str = NAME) -> None:
        treatment = treatment or Hook(self.treat, "")
        library = Library("a-driver", (name,), "things")
        finder.install(self.ground, (Driver(library, treatment, Cooperative()),))

    def write(self, text: str = "VALUE = 1\n", name: str = NAME) -> None:
        (self.directory / f"{name}.py").write_text(text)
        importlib.invalidate_caches()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if not isinstance(each, Finder)])
    monkeypatch.setattr(import_hooks, "_hooks", {})
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Bench(tmp_path)
    for name in [name for name in sys.modules if name.startswith(NAME)]:
        del sys.modules[name]


def test_the_treatment_comes_when_the_module_is_complete(bench: Bench) -> None:
    bench.write()
    bench.install(Hook(lambda module, _: setattr(module, "VALUE", module.VALUE + 1), ""))
    assert importlib.import_module(NAME).VALUE == 2


def test_nothing_of_the_hook_is_seen_on_the_module(bench: Bench) -> None:
    bench.write()
    bench.install()
    module = importlib.import_module(NAME)
    assert not isinstance(module.__loader__, Loader)
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__
    assert pkgutil.get_data(NAME, f"{NAME}.py") == b"VALUE = 1\n"


def test_the_loader_can_be_asked_before_the_import(bench: Bench) -> None:
    bench.write()
    bench.install()
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert spec.loader.get_source(NAME) == "VALUE = 1\n"  # type: ignore[union-attr]
    assert bench.treated == []


def test_what_was_imported_before_is_treated_at_once(bench: Bench) -> None:
    bench.write()
    module = importlib.import_module(NAME)
    bench.install()
    assert bench.treated == [module]


def test_a_reload_is_treated_again(bench: Bench) -> None:
    bench.write()
    bench.install()
    module = importlib.import_module(NAME)
    importlib.reload(module)
    assert bench.treated == [module, module]


def test_a_module_in_a_zip_file(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = bench.directory / "modules.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"{NAME}.py", "VALUE = 1\n")
    monkeypatch.syspath_prepend(str(archive))
    bench.install()
    assert bench.treated == [importlib.import_module(NAME)]


def test_a_module_within_a_package(bench: Bench) -> None:
    (bench.directory / NAME).mkdir()
    bench.write("", f"{NAME}/__init__")
    bench.write("", f"{NAME}/part")
    bench.install(name=f"{NAME}.part")
    importlib.import_module(NAME)
    assert bench.treated == []
    part = importlib.import_module(f"{NAME}.part")
    assert bench.treated == [part]


def test_a_folder_without_code_is_imported_as_ever(bench: Bench) -> None:
    (bench.directory / NAME).mkdir()
    bench.install()
    assert importlib.import_module(NAME).__path__


def test_a_module_that_puts_another_object_into_its_place(bench: Bench) -> None:
    bench.write("import sys, types\nsys.modules[__name__] = types.SimpleNamespace(VALUE=7)\n")
    bench.install()
    module = importlib.import_module(NAME)
    assert module.VALUE == 7
    assert bench.treated == [module]


def test_finder_leaves_missing_modules_missing(bench: Bench) -> None:
    bench.install()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(NAME)


def test_a_module_that_fails_is_not_treated_and_can_be_tried_again(bench: Bench) -> None:
    bench.write("raise OSError('no library')\n")
    bench.install()
    with pytest.raises(OSError, match="no library"):
        importlib.import_module(NAME)
    assert bench.treated == []
    (bench.directory / f"{NAME}.py").write_text("VALUE = 100\n")
    assert importlib.import_module(NAME).VALUE == 100
    assert len(bench.treated) == 1


def test_a_treatment_that_fails_is_a_line_in_the_log_and_no_more(bench: Bench) -> None:
    def fails(module: ModuleType, ground: Ground) -> None:
        raise AttributeError("set_wait_callback")

    bench.write("__version__ = '0.1'\n")
    bench.install(Hook(fails, ""))
    importlib.import_module(NAME)
    ((level, text),) = bench.log.lines
    assert level == "warning"
    assert text.startswith(f"{NAME} 0.1 could not be made cooperative (AttributeError: set_wait_callback)")


@pytest.mark.parametrize("place", [0, 1])
def test_a_finder_that_asks_all_others(bench: Bench, place: int) -> None:
    """As those of instrumentation do; before ours, or behind it."""

    class Curious:
        busy = False

        def find_spec(self, fullname: str, path: object, target: object = None) -> Any:
            if self.busy:
                return None
            self.busy = True
            try:
                return importlib.util.find_spec(fullname)
            finally:
                self.busy = False

    bench.write()
    bench.install()
    sys.meta_path.insert(place, Curious())  # type: ignore[arg-type]
    assert bench.treated == [importlib.import_module(NAME)] == [sys.modules[NAME]]


class TestBlocks:
    def test_one_line_at_the_import(self, bench: Bench) -> None:
        bench.write()
        bench.install(Blocks("Use another one."))
        importlib.reload(importlib.import_module(NAME))
        text = "a-driver (things) blocks the whole worker while it waits. Use another one."
        assert bench.log.lines == [("warning", text)]

    def test_one_line_at_the_first_call(self, bench: Bench) -> None:
        bench.write("def connect(n, *, more=0):\n    'Connects.'\n    return n + more\n")
        bench.install(Blocks("Use another one.", calls=("connect",), level="info"))
        module = importlib.import_module(NAME)
        held = module.connect
        assert held.__doc__ == "Connects."
        assert bench.log.lines == []
        assert module.connect(1, more=2) == 3
        assert held(5) == module.connect(5) == 5, "who took it before the first call has it all the same"
        assert [level for level, _ in bench.log.lines] == ["info"]
        assert module.connect is not held, "later calls cost nothing"

    def test_nothing_under_the_other_hub(self, bench: Bench) -> None:
        bench.write()
        bench.ground.alias = "eventlet"
        bench.install(Blocks("Use another one."))
        importlib.import_module(NAME)
        assert bench.log.lines == []


def test_to_install_again_changes_hands_and_nothing_else(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "_ground", None)
    first, second = Log(), Log()
    drivers.install("gevent", first, None)  # type: ignore[arg-type]
    found = sys.meta_path[0]
    assert isinstance(found, Finder)
    drivers.install("gevent", second, None)  # type: ignore[arg-type]
    assert sys.meta_path[0] is found
    assert not any(isinstance(other, Finder) for other in sys.meta_path[1:])
    assert drivers._ground is not None
    assert drivers._ground.log is second


def test_owners_have_hooks_of_one_module_and_change_their_own(bench: Bench) -> None:
    seen: list[str] = []
    for owner, word in (("metrics", "first"), ("metrics", "second"), ("other", "third")):
        import_hooks.after(owner, {NAME: lambda _, word=word: seen.append(word)})  # type: ignore[misc]
    bench.write()
    bench.install()
    importlib.import_module(NAME)
    assert seen == ["second", "third"]
    assert len(bench.treated) == 1
    assert sum(isinstance(each, Finder) for each in sys.meta_path) == 1


def test_every_library_stands_in_the_table_once() -> None:
    titles = [driver.title for driver in DRIVERS]
    names = [name for driver in DRIVERS for name in driver.imports]
    assert len(set(titles)) == len(titles)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.title)
def test_a_line_says_what_to_do(driver: Driver) -> None:
    for treatment in (driver.gevent, driver.eventlet):
        if isinstance(treatment, Blocks):
            text = line(driver, treatment)
            assert text.endswith(".")
            assert "\n" not in text
            assert len(text) < 400
