"""Who is behind trusted front ends."""

from __future__ import annotations

import pytest
from tricorn.gateway.forwarded import address_of, client_finder


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9, 10.1.2.3", "203.0.113.9"),
        ("10.0.0.1, 10.0.0.2", "10.0.0.1"),
        ("2001:db8::1, ::ffff:10.0.0.2", "2001:db8::1"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("203.0.113.9:1234", "203.0.113.9"),
        ("unknown", None),
        ("", None),
        ("203.0.113.9, unknown, 10.0.0.1", "10.0.0.1"),
    ],
)
def test_the_last_that_is_no_front_end(forwarded: str, client: str | None) -> None:
    assert client_finder("10.0.0.0/8, ::1")(forwarded) == client


def test_where_everybody_is_believed_it_is_the_first() -> None:
    assert client_finder("*")("203.0.113.9, 198.51.100.1") == "203.0.113.9"


def test_where_nobody_is_it_is_the_last() -> None:
    assert client_finder("")("203.0.113.9, 198.51.100.1") == "198.51.100.1"


@pytest.mark.parametrize("text", ["", "example.com", "1.2.3", "1.2.3.4.5", "::1::", "<script>"])
def test_what_is_no_address(text: str) -> None:
    assert address_of(text) is None
