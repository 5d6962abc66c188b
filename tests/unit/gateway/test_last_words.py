"""A traceback in one line."""

from __future__ import annotations

import traceback

import pytest
from tricorn.gateway.last_words import last_words

from tests.harness.groups import BaseExceptionGroup, ExceptionGroup

PACKAGE = "exceptiongroup."
"""Where groups are from before Python 3.11."""


def formatted(error: BaseException) -> str:
    try:
        raise error
    except BaseException:
        return traceback.format_exc()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("no database", "no database"),
        ("first\n\nlast\n", "last"),
        (formatted(OSError("no database")), "OSError: no database"),
        (formatted(ValueError("1 error for Settings\nurl\n  Field required\n")), "ValueError: 1 error for Settings"),
        (formatted(KeyboardInterrupt()), "KeyboardInterrupt"),
        (formatted(SyntaxError("invalid", ("app.py", 1, 2, "a b"))), "SyntaxError: invalid"),
    ],
)
def test_last_words_of_an_exception(text: str, words: str) -> None:
    assert last_words(text).replace(PACKAGE, "") == words


def test_of_one_that_came_while_another_was_handled() -> None:
    try:
        raise OSError("no database")
    except OSError as error:
        outer = RuntimeError("no start")
        outer.__cause__ = error
    assert last_words(formatted(outer)).replace(PACKAGE, "") == "RuntimeError: no start"


class TestGroups:
    def test_last_words_in_json(self) -> None:
        members = [OSError("no database\nat all"), ValueError("no port")]
        text = formatted(ExceptionGroup("errors", members))
        words = last_words(text).replace(PACKAGE, "")
        assert words == "ExceptionGroup: errors (2 sub-exceptions): OSError: no database; ValueError: no port"

    def test_groups_in_groups(self) -> None:
        inner = ExceptionGroup("inner", [TypeError("a"), KeyError("b")])
        text = formatted(BaseExceptionGroup("outer", [inner, SystemExit(1)]))
        assert last_words(text).replace(PACKAGE, "") == (
            "BaseExceptionGroup: outer (2 sub-exceptions): "
            "ExceptionGroup: inner (2 sub-exceptions): TypeError: a; KeyError: 'b'; SystemExit: 1"
        )

    def test_members_with_tracebacks_and_causes(self) -> None:
        def failed() -> Exception:
            try:
                try:
                    raise OSError("cause")
                except OSError as error:
                    raise ValueError("effect") from error
            except ValueError as error:
                return error

        text = formatted(ExceptionGroup("errors", [failed()]))
        assert last_words(text).replace(PACKAGE, "") == "ExceptionGroup: errors (1 sub-exception): ValueError: effect"

    def test_last_words_of_a_handled_exception(self) -> None:
        outer = RuntimeError("no start")
        outer.__cause__ = ExceptionGroup("errors", [OSError()])
        assert last_words(formatted(outer)).replace(PACKAGE, "") == "RuntimeError: no start"

    def test_last_words_of_an_exception_with_a_cause(self) -> None:
        outer = ExceptionGroup("errors", [OSError("x")])
        outer.__cause__ = ValueError("cause")
        assert (
            last_words(formatted(outer)).replace(PACKAGE, "") == "ExceptionGroup: errors (1 sub-exception): OSError: x"
        )
