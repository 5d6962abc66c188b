"""A crate names what its row permits, and a crate without a row is found."""

from __future__ import annotations

from typing import Any

from scripts.check_crates import problems


def package(name: str, *dependencies: tuple[str, str | None]) -> dict[str, Any]:
    return {"name": name, "dependencies": [{"name": each, "kind": kind} for each, kind in dependencies]}


def test_a_dependency_without_permission_is_named_and_one_of_tests_is_not() -> None:
    tree = {"packages": [package("tricorn-proto", ("memchr", None), ("rustix", None), ("proptest", "dev"))]}
    assert problems(tree) == ["tricorn-proto may not depend on rustix"]


def test_a_new_crate_needs_a_row() -> None:
    tree = {"packages": [package("tricorn-new")]}
    assert problems(tree) == ["tricorn-new: a new crate needs an entry in scripts/check_crates.py"]
