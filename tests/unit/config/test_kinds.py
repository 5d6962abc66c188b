"""Kinds of values that one setting has."""

from __future__ import annotations

import pytest
from tricorn.config.kinds import WarmupTargets
from tricorn.config.validators import Malformed, Refused

from tests.harness import with_each


def test_targets_of_warmup_are_paths_and_urls() -> None:
    assert WarmupTargets().parse("/, /login") == ("/", "/login")
    targets = ("/search?q=a,b", "https://shop.example:8443/login", "http://[::1]", "http://a?b=c")
    assert WarmupTargets().parse(list(targets)) == targets
    assert WarmupTargets().parse(()) == ()


@with_each(
    "text", ["login", "", "ftp://a/", "https://", "//a/b c", "/a b", "/a#b", "/é", "https://user@a/", "http:///x"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(Refused, match="expected a path such as /login"):
        WarmupTargets().parse([text])


def test_a_number_is_no_list() -> None:
    with pytest.raises(Malformed, match="expected a list of texts"):
        WarmupTargets().parse(8)
