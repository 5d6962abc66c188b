"""Lines of the log are found in the sources, each as it is told, and a text that is made elsewhere is asked for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from scripts import log_lines
from scripts.log_lines import Line, Opaque, Reader, line_of, rust_texts


def said(source: str) -> list[tuple[str, str]]:
    reader = Reader(ast.parse(source), "arbiter/some.py")
    reader.read()
    return [(line.level, line.text) for line in reader.lines]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Worker %s left after %.1f s", "Worker … left after … s"),
        ("%(h)s is 50%% full", "… is 50% full"),
        ("one\n  and two", "one and two"),
        ("… … and …", "… and …"),
        ("plain", "plain"),
    ],
)
def test_a_text_is_told_with_dots_for_its_values(text: str, line: str) -> None:
    assert line_of(text) == line


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('self.log.warning("The disk is full")', [("warning", "The disk is full")]),
        ('log.exception("It failed")', [("error", "It failed")]),
        ('logging.getLogger("x").info(f"Using {name}")', [("info", "Using …")]),
        ('self.log.error("All of " + "them %s" % x)', [("error", "All of them …")]),
        ('self.log.info("One" if x else "Other")', [("info", "One"), ("info", "Other")]),
        ('TEXT = "Kept as {name}"\nself.log.info(TEXT.format(name=1))', [("info", "Kept as …")]),
        ('def f(self):\n    text = "Made here"\n    self.log.debug(text)', [("debug", "Made here")]),
        ('Logger.info(self, "By the class")', [("info", "By the class")]),
        ('Log("warning", "By the policy")', [("warning", "By the policy")]),
        ('Log(level, "By the policy")', [("info or error", "By the policy")]),
        ('raise ConfigError(f"No {x} here")', [("ConfigError", "No … here")]),
        ('raise ValueError("No line")', []),
        ('print("No line")', []),
        ('self.catalogue.info("No line")', []),
    ],
)
def test_what_logs_is_found_with_its_level(source: str, lines: list[tuple[str, str]]) -> None:
    assert said(source) == lines


def test_a_text_that_is_made_elsewhere_is_opaque() -> None:
    reader = Reader(ast.parse("class A:\n    def f(self, text):\n        self.log.info(text)\n"), "log/a.py")
    reader.read()
    assert reader.lines == []
    assert reader.opaque == [Opaque("log/a.py:A.f", 3)]


def test_texts_of_rust_are_those_of_its_code() -> None:
    source = (
        '// a comment says "nothing"\n#[doc = "nothing"]\n'
        'let one = "The \\"first\\" line";\nlet two = "goes \\\n    on";\n'
        '#[cfg(test)]\nmod tests { const T: &str = "nothing"; }\n'
    )
    assert list(rust_texts(source)) == ['The "first" line', "goes on"]


@pytest.fixture
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sources of one file of the core."""
    path = tmp_path / "crates/tricorn-io/src/a.rs"
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(log_lines, "ROOT", tmp_path)
    monkeypatch.setattr(log_lines, "CORE", {"tricorn-io/src/a.rs": "warning"})
    return path


def test_lines_of_the_core_are_sentences(core: Path) -> None:
    texts = (
        "Refused with {}: too long",
        "{peer} has gone away",
        "short one",
        "lower case is no line",
        "GET / HTTP/1.1",
    )
    core.write_text(
        "".join(f'let _ = "{text}";\n' for text in (*texts, "After a while the client disconnected, early"))
    )
    assert log_lines.core_lines() == [
        Line("Refused with …: too long", "warning", "crates/tricorn-io/src/a.rs"),
        Line("… has gone away", "warning", "crates/tricorn-io/src/a.rs"),
        Line("After a while the client disconnected, early", "debug", "crates/tricorn-io/src/a.rs"),
    ]


def test_a_file_of_the_core_that_speaks_has_to_be_known(core: Path) -> None:
    core.write_text('shared.notice(true, || "Known");\n')
    core.with_name("b.rs").write_text('shared.notice(true, || format!("New {x}"));\n')
    core.with_name("c.rs").write_text("shared.notice(true, || text);\n")
    assert log_lines.silent_files() == ["crates/tricorn-io/src/b.rs"]


def test_what_is_carried_and_what_is_not_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "python_lines", lambda: ([], [Opaque("new.py:f", 1), Opaque("old.py:f", 1)]))
    monkeypatch.setattr(log_lines, "silent_files", list)
    monkeypatch.setattr(log_lines, "CARRIED", {"old.py:f": (), "gone.py:f": ()})
    with pytest.raises(SystemExit) as told:
        log_lines.all_lines()
    assert "new.py:f logs a text that is made elsewhere" in str(told.value)
    assert "gone.py:f is in CARRIED" in str(told.value)
    assert "old.py" not in str(told.value)


def test_a_line_that_two_calls_say_has_both_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = [Line("It is over", level, "a.py") for level in ("info", "error", "info")]
    monkeypatch.setattr(log_lines, "python_lines", lambda: (twice, []))
    monkeypatch.setattr(log_lines, "CARRIED", {})
    for name in ("silent_files", "carried_lines", "core_lines"):
        monkeypatch.setattr(log_lines, name, list)
    assert log_lines.all_lines() == [Line("It is over", "info or error", "a.py")]


def test_the_maker_of_a_text_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(
        'def words():\n    """No line, I am."""\n    return f"Has {x} of them" if x else "No"\n'
    )
    monkeypatch.setattr(log_lines, "PACKAGE", tmp_path)
    monkeypatch.setattr(log_lines, "CARRIED", {"b.py:f": ("a.py:words",)})
    assert log_lines.carried_lines() == [Line("Has … of them", "warning", "python/tricorn/a.py")]
    monkeypatch.setattr(log_lines, "CARRIED", {"b.py:f": ("a.py:gone",)})
    with pytest.raises(SystemExit, match=r"a\.py has no function gone"):
        log_lines.carried_lines()
