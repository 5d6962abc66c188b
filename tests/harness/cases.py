"""A list of values inside one test: each is tried, and a failure names all that did not pass.

A parameter of pytest makes a test of every value. That costs more than a request does, and is worth it for what the
columns of a report mean: the server, the version, the framing. For a list of values a loop will do.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])
TOLD_OF_EACH = 1000
"""Characters. The first failure is shown in full anyway, as the cause."""


class Case(NamedTuple):
    name: str
    arguments: Mapping[str, Any]


def with_each(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, but one test. A mapping has the names of its values; two lists are multiplied.

    Fixtures are those of the test, not of the case. A case that does not apply returns, and says why.
    """
    cases = list(_cases(names, values))
    assert cases, f"{names}: nothing would be tried"

    def decorate(test: Test) -> Test:
        function, before = getattr(test, "tried_with", (test, [Case("", {})]))
        product = [
            Case("-".join(filter(None, (first.name, second.name))), {**first.arguments, **second.arguments})
            for first in before
            for second in cases
        ]

        @functools.wraps(test)
        def tried(*args: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            _try_all(lambda case: function(*args, **fixtures, **case.arguments), product)

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in cases[0].arguments]
        assert len(left) + len(cases[0].arguments) == len(signature.parameters), f"it has no parameter {names}"
        vars(tried).update(tried_with=(function, product), __signature__=signature.replace(parameters=left))
        return tried  # type: ignore[return-value]

    return decorate


def try_each(attempt: Callable[[Any], None], values: Mapping[str, Any]) -> None:
    """The same where only the test knows the values."""
    __tracebackhide__ = True
    _try_all(lambda case: attempt(case.arguments["value"]), [Case(name, {"value": values[name]}) for name in values])


def _cases(names: str | tuple[str, ...], values: Iterable[Any]) -> Iterable[Case]:
    named = values.items() if isinstance(values, Mapping) else ((None, value) for value in values)
    for name, value in named:
        several = (value,) if isinstance(names, str) else tuple(value)
        keys = (names,) if isinstance(names, str) else names
        yield Case(name or "-".join(map(_shown, several)), dict(zip(keys, several, strict=True)))


def _shown(value: object) -> str:
    text = value if isinstance(value, str) and value else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _try_all(attempt: Callable[[Case], None], cases: list[Case]) -> None:
    __tracebackhide__ = True
    failed: list[tuple[str, BaseException]] = []
    for place, case in enumerate(cases, 1):
        try:
            attempt(case)
        except pytest.exit.Exception:
            raise
        except pytest.skip.Exception:
            if not failed:
                raise
            _tell(failed, place - 1, len(cases))
        except (Exception, pytest.fail.Exception) as error:
            failed.append((case.name, error))
            if _is_timeout(error):
                _tell(failed, place, len(cases))
    if failed:
        _tell(failed, len(cases), len(cases))


def _is_timeout(error: BaseException) -> bool:
    """The time is that of all cases, and no timeout would end the next one."""
    return isinstance(error, pytest.fail.Exception) and "from pytest-timeout" in str(error)


def _tell(failed: list[tuple[str, BaseException]], tried: int, count: int) -> NoReturn:
    """The first line is what pytest lists at the end."""
    __tracebackhide__ = True
    rest = "" if tried == count else f"; {count - tried} were not tried"
    lines = [f"{len(failed)} of {count} failed: {', '.join(name for name, _ in failed)}{rest}"]
    lines += [f"{name}: {type(error).__name__}: {str(error)[:TOLD_OF_EACH]}" for name, error in failed]
    raise AssertionError("\n".join(lines)) from failed[0][1]
