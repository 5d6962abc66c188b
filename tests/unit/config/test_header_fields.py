"""Header fields of the operator's."""

from __future__ import annotations

import pytest
from tricorn.config.header_fields import HeaderFields, ServerName
from tricorn.config.validators import Invalid, Malformed


@pytest.mark.parametrize(
    ("raw", "value"),
    [(True, "tricorn"), ("true", "tricorn"), (False, ""), (None, ""), ("", ""), (" shop/1.0 (x) ", "shop/1.0 (x)")],
)
def test_the_servers_name(raw: object, value: str) -> None:
    assert ServerName().parse(raw) == value


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        ("X-A: 1", (("X-A", "1"),)),
        ("X-A: 1\nX-B:2:3\n", (("X-A", "1"), ("X-B", "2:3"))),
        (["X-A:1", ("X-A", "2")], (("X-A", "1"), ("X-A", "2"))),
        ({"X-A": "1"}, (("X-A", "1"),)),
        ([], ()),
    ],
)
def test_header_fields_are_parsed(raw: object, fields: object) -> None:
    assert HeaderFields().parse(raw) == fields


@pytest.mark.parametrize(
    "raw",
    [
        ["X-A"],
        ["X A: 1"],
        [("X-A", "1\r\nX-B: 2")],
        [("X-A", "\x00")],
        ["X-A: ü"],
        ["Content-Length: 3"],
        ["transfer-encoding: chunked"],
        ["Date: now"],
        [3],
        3,
    ],
)
def test_invalid_header_field(raw: object) -> None:
    with pytest.raises(Invalid):
        HeaderFields().parse(raw)


def test_invalid_header_name() -> None:
    with pytest.raises(Invalid):
        ServerName().parse("a\r\nb")
    with pytest.raises(Malformed):
        ServerName().parse(3)
