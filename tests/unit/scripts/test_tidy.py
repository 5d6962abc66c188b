"""The house rules: pronouns as actors in what users read, and what the server may import."""

from __future__ import annotations

import ast

import pytest

from scripts import tidy

WHO = "no" + "body"  # this file is read by the rule, too


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        ("docs/page.md", f"One.\n{WHO} waits.\n", [2]),
        ("README.md", f"{WHO.title()} waits.\n", [1]),
        ("SECURITY.md", f"One waits.\nEvery{WHO[2:]} waits. Any{WHO[2:]} too. No o{'ne'}.\n", [2, 2, 2]),
        ("tests/README.md", f"{WHO} waits.\n", []),
        ("python/tricorn/a.py", f'"""{WHO} reads it."""\nx = f"{WHO}: {{1}}"\n', [2]),
        ("python/tricorn/a.py", f'class A:\n    b = 1\n    """{WHO} has it."""\n    # {WHO}\n', []),
        ("crates/a/src/lib.rs", f'// {WHO}\nfn a() {{ b("{WHO}") }}\n', [2]),
        ("crates/a/src/lib.rs", f'#[cfg(test)]\nmod tests {{ const A: &str = "{WHO}"; }}\n', []),
        ("crates/a/tests/suite/a.rs", f'fn a() {{ b("{WHO}") }}\n', []),
    ],
)
def test_pronouns_in_what_users_read(path: str, text: str, lines: list[int]) -> None:
    found = list(tidy.shown_pronouns(path, text))
    assert [int(each.split(":")[1]) for each in found] == lines


def test_the_server_imports_no_other_distribution_not_even_for_type_checkers() -> None:
    text = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from tricorn_green.offload import offload
def f():
    import tricorn_tools.top
"""
    said = "which the server finds by entry points (tricorn.extensions)"
    assert list(tidy.forbidden_imports("python/tricorn/a.py", ast.parse(text))) == [
        f"python/tricorn/a.py: imports tricorn_green, {said}",
        f"python/tricorn/a.py: imports tricorn_tools, {said}",
    ]
    assert list(tidy.forbidden_imports("packages/tricorn-tools/tricorn_tools/a.py", ast.parse(text))) == []


def test_docstrings_that_begin_with_a_question_or_a_genitive() -> None:
    lines = [
        '"""What it is."""',
        "class A:",
        "    x: int",
        '    """Of the server."""',
        "    def f(self):",
        '        """Returns x."""',
    ]
    tree = ast.parse("\n".join(lines))
    assert [line.partition(": ")[0] for line in tidy.translated_titles("a.py", tree)] == ["a.py:1", "a.py:4"]
