"""Kinds whose values are names of something in the world."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tricorn.config.lookups import (
    ClassName,
    Dictionary,
    ExistingPath,
    ExistingPaths,
    Group,
    Hook,
    User,
    accepts,
)
from tricorn.config.validators import Invalid, Malformed, Refused


class Callable:
    def __call__(self, one: object, two: object) -> str:
        return "called"

    def method(self, one: object, two: object) -> str:
        return "method"


HOOKS = [
    lambda one, two: None,
    lambda one, two, three=None: None,
    lambda *all_of_them: None,
    functools.partial(lambda zero, one, two: None, 0),
    Callable(),
    Callable().method,
    divmod,
    max,
    itertools.product,
]
"""The last two are written in C; where they do not say what they take (inspect.signature), they are believed."""


@pytest.mark.parametrize("function", HOOKS)
def test_whatever_can_be_called_with_the_arguments_is_a_hook(function: Any) -> None:
    assert Hook("server, worker").parse(function) is function


@pytest.mark.parametrize("function", [lambda: None, lambda one: None, lambda a, b, c: None, lambda a, *, b: None])
def test_a_function_of_other_arguments_is_not(function: Any) -> None:
    with pytest.raises(Refused, match="expected a function of 2 arguments"):
        Hook("server, worker").parse(function)


def test_hook_of_one_argument() -> None:
    with pytest.raises(Refused, match=r"expected a function of 1 argument$"):
        Hook("server").parse(lambda: None)


@pytest.mark.parametrize("value", [1, None, "", "function", object()])
def test_what_is_no_function_is_no_hook(value: object) -> None:
    with pytest.raises(Malformed):
        Hook("server").parse(value)


class TestDottedNames:
    @pytest.fixture(autouse=True)
    def _modules(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        (tmp_path / "lookups_hooks.py").write_text("def starting(server): ...\nclass Space:\n    x = 1\n")
        (tmp_path / "lookups_broken.py").write_text("1/0\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        yield
        for name in ("lookups_hooks", "lookups_broken"):
            sys.modules.pop(name, None)

    def test_dotted_names_are_imported(self) -> None:
        assert Hook("server").parse(" lookups_hooks.starting ").__name__ == "starting"

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("lookups_hooks.stating", "the module 'lookups_hooks' has no 'stating'"),
            ("lookups_nowhere.x", "the module 'lookups_nowhere' cannot be imported"),
            ("lookups_broken.x", r"cannot be imported \(ZeroDivisionError: division by zero\)"),
        ],
    )
    def test_what_cannot_be_imported_is_refused_with_the_reason(self, name: str, words: str) -> None:
        with pytest.raises(Refused, match=words):
            Hook("server").parse(name)


@pytest.mark.parametrize("arity", [2, 3, 4])
def test_post_request_gets_as_many_arguments_as_it_takes(arity: int) -> None:
    got: list[tuple[object, ...]] = []
    functions: dict[int, Any] = {
        2: lambda worker, req: got.append((worker, req)),
        3: lambda worker, req, environ: got.append((worker, req, environ)),
        4: lambda worker, req, environ, resp: got.append((worker, req, environ, resp)),
    }
    hook = Hook("worker, req, environ, resp", fewest=2).parse(functions[arity])
    hook("worker", "req", "environ", "resp")
    assert got == [("worker", "req", "environ", "resp")[:arity]]


def test_post_request_keeps_its_name_and_can_be_read_again() -> None:
    def named(worker: object, req: object) -> str:
        return "seen"

    hook = Hook("worker, req, environ, resp", fewest=2).parse(named)
    assert hook.__qualname__ == named.__qualname__
    assert Hook("worker, req, environ, resp", fewest=2).parse(hook) is hook


@pytest.mark.parametrize("function", [lambda: None, lambda one: None, lambda a, b, c, d, e: None])
def test_post_request_of_other_arguments_is_refused(function: Any) -> None:
    with pytest.raises(Refused, match="expected a function of 4, 3 or 2 arguments"):
        Hook("worker, req, environ, resp", fewest=2).parse(function)


def test_a_class_its_name_or_a_function_that_returns_it() -> None:
    assert ClassName().parse(Callable) is Callable
    assert ClassName().parse(" module.Class ") == "module.Class"
    assert ClassName().parse(lambda: Callable) is Callable


@pytest.mark.parametrize("value", [None, "", " ", 1, Callable()])
def test_invalid_class_setting(value: object) -> None:
    with pytest.raises(Malformed):
        ClassName().parse(value)


@pytest.mark.parametrize("kind", [User(), Group()])
class TestIdentities:
    def test_a_number_need_not_have_a_name(self, kind: Any) -> None:
        assert kind.parse("54321") == kind.parse(54321) == 54321

    def test_root_is_0_everywhere(self, kind: Any) -> None:
        assert kind.parse("root") == 0

    def test_user_none_is_the_current_user(self, kind: Any) -> None:
        assert kind.parse(None) == (os.geteuid() if isinstance(kind, User) else os.getegid())

    @pytest.mark.parametrize("value", ["no-user-of-that-name", -1, "-1"])
    def test_somebody_who_does_not_exist_is_refused(self, kind: Any, value: object) -> None:
        with pytest.raises(Refused):
            kind.parse(value)

    @pytest.mark.parametrize("value", [True, 1.5, []])
    def test_what_is_neither_name_nor_number(self, kind: Any, value: object) -> None:
        with pytest.raises(Malformed):
            kind.parse(value)


class TestFiles:
    @pytest.fixture
    def directory(self, tmp_path: Path) -> str:
        (tmp_path / "file").write_text("")
        (tmp_path / "sub").mkdir()
        return str(tmp_path)

    @pytest.mark.parametrize("path", ["sub", "{}/sub", "."])
    def test_a_directory_that_exists(self, path: str, directory: str) -> None:
        ExistingPath("DIR").look_up(path.format(directory), directory)

    @pytest.mark.parametrize("path", ["file", "nowhere", "/no/such/directory"])
    def test_path_that_does_not_exist(self, path: str, directory: str) -> None:
        with pytest.raises(Refused, match="expected a directory that exists"):
            ExistingPath("DIR").look_up(path, directory)

    def test_path_of_a_file(self, directory: str) -> None:
        ExistingPath("FILE").look_up("file", directory)
        for path in ("sub", "nowhere"):
            with pytest.raises(Refused, match="expected a file that exists"):
                ExistingPath("FILE").look_up(path, directory)

    def test_path_none_stays_none(self, directory: str) -> None:
        for kind in (ExistingPath("FILE"), ExistingPath("DIR")):
            for raw in (None, "", " "):
                assert kind.parse(raw) is None
            kind.look_up(None, directory)

    def test_paths_may_be_paths(self) -> None:
        assert ExistingPath("FILE").parse(Path("a/b")) == "a/b"

    def test_patterns_may_match_later(self, directory: str) -> None:
        ExistingPaths("FILES").look_up(("file", "*.html", "deep/**/x?"), directory)
        with pytest.raises(Refused, match="the file or directory 'nowhere' does not exist"):
            ExistingPaths("FILES").look_up(("file", "nowhere"), directory)

    def test_one_file_is_a_list_of_one(self) -> None:
        assert ExistingPaths("FILES").parse("a b,c") == ("a b,c",)
        assert ExistingPaths("FILES").parse(["a", "b"]) == ("a", "b")


def test_a_dict_is_kept_as_it_is() -> None:
    given = {"version": 1}
    assert Dictionary().parse(given) is given
    assert Dictionary().parse('{"version": 1}') == given


@pytest.mark.parametrize("value", [None, [], "[]", "{", 1])
def test_invalid_dict_setting(value: object) -> None:
    with pytest.raises(Invalid):
        Dictionary().parse(value)


def test_a_hook_written_in_c_need_not_say_what_it_takes() -> None:
    without = [each for each in (max, min, itertools.product, dict.update, type) if not _has_signature(each)]
    assert without, "this Python tells it of all"
    for function in without:
        assert Hook("server, worker").parse(function) is function
        assert accepts(function, 2)


def _has_signature(function: Any) -> bool:
    try:
        inspect.signature(function)
    except ValueError:
        return False
    return True
