"""The setting `offload`: names, and which threads may call them."""

from __future__ import annotations

import pytest
from tricorn.config.kinds import AFFINITIES, OffloadTargets
from tricorn.config.validators import Invalid
from tricorn_green.offload import AFFINITIES as KNOWN


def test_names_of_functions_and_methods() -> None:
    targets = ("a:b", "a.b:C.d", "a:B.c@object", "a:b@process")
    assert OffloadTargets().parse(",".join(targets)) == targets
    assert OffloadTargets().parse(list(targets)) == targets


@pytest.mark.parametrize("wrong", ["a", "a.b", ":b", "a:", "a:b.c.d", "a:b()", "a b:c"])
def test_offloaded_function_with_an_invalid_name(wrong: str) -> None:
    with pytest.raises(Invalid, match=r"expected package\.module:function or package\.module:Class\.method"):
        OffloadTargets().parse(wrong)


def test_offloaded_function_with_an_unknown_affinity() -> None:
    with pytest.raises(Invalid, match=r"expected @any, @object, @process at the end of 'a:b@objekt'.*'?@object'?"):
        OffloadTargets().parse("a:b@objekt")


def test_the_words_are_those_of_the_function() -> None:
    assert AFFINITIES == KNOWN
