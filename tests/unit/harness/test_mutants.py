"""A row of the mutation check that no longer fits its file is an error, not a fault that nothing was done for."""

from __future__ import annotations

import pytest

from tests.mutants import FAULTS
from tests.mutants import __main__ as mutants
from tests.mutants.fault import Fault

TEXT = "fn one() { check(); }\nfn two() { check(); last(); }\n"


def row(before: str, after: str = "", at: str = "", name: str = "it", path: str = "a.rs") -> Fault:
    return Fault(name, "something", path, before, after, ("tests/unit",), at)


def test_place_of_a_fault_is_unique_or_after_its_anchor() -> None:
    assert mutants.place(row("last()"), TEXT) == TEXT.index("last()")
    assert mutants.place(row("check()", at="fn two"), TEXT) == TEXT.rindex("check()")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (row("check()"), "2 times"),
        (row("gone()"), "0 times"),
        (row("check()", at="fn three"), "0 times"),
        (row("check()", at="fn"), "2 times"),
        (row("one", at="fn two"), "no 'one' after"),
    ],
)
def test_a_row_that_does_not_fit_is_a_misfit(fault: Fault, says: str) -> None:
    with pytest.raises(mutants.Misfit, match=says):
        mutants.place(fault, TEXT)


def test_expressions_are_put_in_parentheses_and_statements_are_not() -> None:
    assert mutants.switched(row("a < b", "false")) == '(if crate::fault("it") { false } else { a < b })'
    assert mutants.switched(row("flush();")) == 'if crate::fault("it") {  } else { flush(); }'


def test_every_misfit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        row("x", path="no/such/file.rs"),
        row("no such text", name="one", path="Makefile"),
        row("no such text", name="one", path="Makefile"),
    )
    monkeypatch.setattr(mutants, "FAULTS", rows)
    found = mutants.misfits()
    assert found[0] == "one: a name has one row"
    assert found[1] == "it: no/such/file.rs is gone"
    assert len(found) == 4


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 100
    assert len([fault for fault in FAULTS if mutants.is_rust(fault)]) >= 50
