"""Licences are expressions: what may be chosen, and what comes together."""

from __future__ import annotations

import pytest

from scripts.check_crates import SOURCE, permitted, supply


@pytest.mark.parametrize(
    "licence",
    [
        "MIT",
        "Apache-2.0 OR MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
        "Apache-2.0 WITH LLVM-exception",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "MIT AND Zlib",
    ],
)
def test_a_licence_that_can_be_met(licence: str) -> None:
    assert permitted(licence)


@pytest.mark.parametrize(
    "licence", [None, "", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND AGPL-3.0", "(GPL-2.0 OR GPL-3.0) AND MIT"]
)
def test_a_licence_that_cannot(licence: str | None) -> None:
    assert not permitted(licence)


def test_a_package_from_elsewhere_is_named() -> None:
    own = {"id": "a", "name": "own", "version": "1", "license": "MIT", "source": None}
    good = {"id": "b", "name": "good", "version": "1", "license": "MIT", "source": SOURCE}
    fork = {"id": "c", "name": "fork", "version": "2", "license": "MIT", "source": "git+https://example.org/fork"}
    tree = {"packages": [own, good, fork], "workspace_members": ["a"]}
    assert supply(tree) == ["fork 2 comes from git+https://example.org/fork, not from crates.io"]
