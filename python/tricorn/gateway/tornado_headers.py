"""tornado's HTTPHeaders, from what the core has checked and for what it sends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tornado.httputil import HTTPHeaders

if TYPE_CHECKING:
    from tricorn.gateway.call import Fields


def _quick_headers(fields: dict[str, list[str]]) -> HTTPHeaders:
    headers = HTTPHeaders.__new__(HTTPHeaders)
    headers._as_list = fields
    headers._combined_cache = {}
    return headers


def _slow_headers(fields: dict[str, list[str]]) -> HTTPHeaders:
    headers = HTTPHeaders()
    for name, values in fields.items():
        for value in values:
            headers.add(name, value)
    return headers


def _are_as_known() -> bool:
    """Whether HTTPHeaders of this tornado hold what we fill in; checking every name and value again takes long."""
    fields = {"Accept": ["a"], "X-Two": ["1", "2"]}
    slow = _slow_headers(fields)
    quick = _quick_headers({name: list(values) for name, values in fields.items()})
    return (
        vars(quick).keys() == vars(slow).keys()
        and getattr(slow, "_as_list", None) == fields
        and dict(quick) == dict(slow)
        and list(quick.get_all()) == list(slow.get_all())
    )


def fields_of(headers: HTTPHeaders) -> Fields:
    """The fields of an answer, for `Call.start`."""
    return headers._as_list if ARE_AS_KNOWN and type(headers) is HTTPHeaders else list(headers.get_all())


ARE_AS_KNOWN = _are_as_known()
make_headers = _quick_headers if ARE_AS_KNOWN else _slow_headers
"""Header fields of a request, which the core has checked."""
