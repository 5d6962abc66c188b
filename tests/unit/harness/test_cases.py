"""A loop that stands for many tests must fail where one of them would have."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import pytest_timeout

from tests.harness.cases import try_each, with_each

SEEN: list[object] = []


def tries(*outcomes: BaseException | None) -> Callable[[], None]:
    """A test of so many cases, named by their number, each of which ends in its own way."""

    @with_each("number", range(len(outcomes)))
    def test(number: int) -> None:
        SEEN.append(number)
        outcome = outcomes[number]
        if outcome is not None:
            raise outcome

    SEEN.clear()
    return test


def test_every_case_is_tried() -> None:
    tries(None, None, None)()
    assert SEEN == [0, 1, 2]


def test_values_that_only_the_test_knows_are_tried_likewise() -> None:
    seen: list[int] = []

    def attempt(value: int) -> None:
        seen.append(value)
        assert value != 2

    with pytest.raises(AssertionError, match=r"^1 of 3 failed: two"):
        try_each(attempt, {"one": 1, "two": 2, "three": 3})
    assert seen == [1, 2, 3]


def test_all_that_failed_are_named_and_the_others_are_tried() -> None:
    first = AssertionError("it is no two")
    with pytest.raises(AssertionError) as failure:
        tries(None, first, None, OSError("gone"), pytest.fail.Exception("DID NOT RAISE"), None)()
    assert SEEN == [0, 1, 2, 3, 4, 5]
    assert str(failure.value).splitlines() == [
        "3 of 6 failed: 1, 3, 4",
        "1: AssertionError: it is no two",
        "3: OSError: gone",
        "4: Failed: DID NOT RAISE",
    ]
    assert failure.value.__cause__ is first
    assert "raise outcome" in str(failure.getrepr()), "the place where the first one failed is shown"


@pytest.mark.parametrize("end", [KeyboardInterrupt(), SystemExit(1), pytest.exit.Exception("enough")])
def test_what_is_to_end_the_run_ends_it(end: BaseException) -> None:
    with pytest.raises(type(end)):
        tries(AssertionError("failed"), end, None)()
    assert SEEN == [0, 1]


def test_a_skip_is_one_unless_a_case_has_failed_before() -> None:
    lacking = pytest.skip.Exception("something is not installed")
    with pytest.raises(pytest.skip.Exception):
        tries(None, lacking)()
    with pytest.raises(AssertionError, match="1 of 3 failed: 0; 2 were not tried\n"):
        tries(AssertionError("failed"), lacking, None)()


def test_a_case_that_takes_the_time_of_all_is_the_last() -> None:
    over = pytest.fail.Exception(pytest_timeout.PYTEST_FAILURE_MESSAGE % 90)
    with pytest.raises(AssertionError, match="2 of 4 failed: 0, 2; 1 were not tried\n"):
        tries(AssertionError("failed"), None, over, None)()
    assert SEEN == [0, 1, 2]


@with_each("letter", {"first": "a", "second": "b"})
@with_each(("number", "text"), [(1, "one"), (2, "")])
def several(fixture: str, letter: str, number: int, text: str) -> None:
    SEEN.append((fixture, letter, number, text))
    raise AssertionError("failed")


def test_lists_are_multiplied_and_fixtures_are_left() -> None:
    assert list(inspect.signature(several).parameters) == ["fixture"]
    SEEN.clear()
    with pytest.raises(AssertionError, match="4 of 4 failed: 1-one-first, 1-one-second, 2-''-first, 2-''-second\n"):
        several(fixture="f")  # type: ignore[call-arg]
    assert SEEN == [("f", "a", 1, "one"), ("f", "b", 1, "one"), ("f", "a", 2, ""), ("f", "b", 2, "")]


@pytest.mark.parametrize("column", ["one", "two"])
@with_each("value", [1, 2])
def test_pytest_sees_the_other_parameters(column: str, value: int, request: pytest.FixtureRequest) -> None:
    assert request.node.callspec.params == {"column": column}
    assert value in (1, 2)


def test_a_list_of_nothing_is_refused() -> None:
    with pytest.raises(AssertionError, match="value: nothing would be tried"):
        with_each("value", [])


def test_a_parameter_that_the_test_does_not_have_is_refused() -> None:
    with pytest.raises(AssertionError, match="it has no parameter valve"):

        @with_each("valve", [1])
        def test(value: int) -> None:
            pass
