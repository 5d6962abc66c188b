"""Commands, worker classes and modules of other distributions: those that are there, and those that are not."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import tricorn
from tricorn import extensions
from tricorn.cli import main
from tricorn.config.command_line import read_arguments
from tricorn.config.resolve import resolve
from tricorn.errors import ConfigError, is_own
from tricorn.extensions import Distribution
from tricorn.workers import foreign, registry
from tricorn.workers.sync import SyncWorker

from tests.unit.cli.test_start import imported

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
POINTS = """\
[tricorn.commands]
greet = a_plugin:greet

[tricorn.worker_classes]
patient = a_plugin:PatientWorker
"""
PLUGIN = """\
from tricorn.workers.sync import SyncWorker

class PatientWorker(SyncWorker):
    pass

def greet(words):
    print("Hello", *words)
    return 7
"""


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "_found", {})


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution of a stranger."""
    info = tmp_path / "a_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA.format(name="a-plugin"))
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "a_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "a_plugin", raising=False)
    importlib.invalidate_caches()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server without tricorn's other distributions."""
    monkeypatch.setattr(extensions, "_read", lambda distribution, group: {})


def test_own_distributions_are_found_without_importlib_metadata() -> None:
    code = "from tricorn import extensions as e; assert all(e.find(g, n) for g, names in e.OWN.items() for n in names)"
    assert not {"importlib.metadata", "email", "csv"} & imported(code)


def test_each_name_that_is_known_leads_somewhere() -> None:
    for group, names in extensions.OWN.items():
        for name in names:
            assert extensions.load(group, name, "a test") is not None, (group, name)


@pytest.mark.usefixtures("plugin")
def test_a_distribution_adds_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["greet", "all", "of", "you"]) == 7
    assert capsys.readouterr().out == "Hello all of you\n"


@pytest.mark.usefixtures("plugin")
def test_a_distribution_adds_a_worker_class() -> None:
    assert registry.choose("patient", 1) == "sync"
    config = resolve([read_arguments(["-k", "patient"])])
    assert registry.kind_of(config).__name__ == "PatientWorker"


def test_what_no_distribution_has_is_a_mistake() -> None:
    assert extensions.find(extensions.COMMANDS, "no-such-command") is None
    with pytest.raises(LookupError):
        extensions.load(extensions.WORKER_CLASSES, "no_such_class", "a test")
    with pytest.raises(ConfigError, match=r"Unknown worker class .*: expected one of"):
        registry.choose("patient", 1)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("command", "distribution", "extra"),
    [("top", extensions.TOOLS, "tools"), ("init", extensions.TOOLS, "tools"), ("bench", extensions.BENCH, "bench")],
)
def test_a_command_whose_distribution_is_missing_says_how_to_get_it(
    command: str, distribution: Distribution, extra: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command]) == 2
    assert capsys.readouterr().err == (
        f"tricorn: error: tricorn {command} needs {distribution.name}, which is not installed: "
        f"pip install 'tricorn[{extra}]'\n"
    )


@pytest.mark.usefixtures("alone")
def test_a_class_and_a_module_whose_distribution_is_missing_say_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match=r"GeventWorker' needs .* pip install 'tricorn\[gevent\]'"):
        registry.choose("gunicorn.workers.ggevent.GeventWorker", 1)
    with pytest.raises(ImportError, match=r"tricorn\.offload needs .* pip install tricorn-green"):
        _ = tricorn.offload


def test_what_own_distributions_have_is_not_the_applications() -> None:
    from tricorn_green import survey
    from tricorn_green.workers import gevent

    assert is_own(tricorn.__file__)
    assert is_own(gevent.__file__)
    assert not is_own(__file__)
    assert not any(survey.is_foreign(name) for name in sys.modules if name.partition(".")[0].startswith("tricorn"))
    # No line in the log says that GeventWorker overrides what gunicorn's classes have.
    assert foreign.overridden(gevent.GeventWorker) == foreign.overridden(SyncWorker)
    assert foreign.load(gevent.GeventWorker) is gevent.GeventWorker
