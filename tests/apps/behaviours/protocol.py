"""Calls of start_response that PEP 3333 forbids, by `case`; the server has to refuse each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from behaviours.query import parameters

BREAKS_RULES = True
PLAIN = ("Content-Type", "text/plain")


def twice(start_response: Any) -> list[bytes]:
    start_response("200 OK", [PLAIN])
    start_response("201 Again", [PLAIN])
    return [b"never"]


def twice_tolerated(start_response: Any) -> list[bytes]:
    start_response("200 OK", [PLAIN])
    try:
        start_response("201 Again", [PLAIN])
    except AssertionError:
        return [b"AssertionError"]
    return [b"nothing was raised"]


def never(start_response: Any) -> list[bytes]:
    return [b"no start_response"]


def answering(status: Any, fields: Any) -> Callable[[Any], list[bytes]]:
    def answer(start_response: Any) -> list[bytes]:
        start_response(status, fields)
        return [b"body"]

    return answer


CASES: dict[str, Callable[[Any], list[bytes]]] = {
    "twice": twice,
    "twice_tolerated": twice_tolerated,
    "never": never,
    "status_empty": answering("", [PLAIN]),
    "status_words": answering("OK", [PLAIN]),
    "status_short": answering("20 OK", [PLAIN]),
    "status_crlf": answering("200 OK\r\nX-Injected: yes", [PLAIN]),
    "status_lf": answering("200 OK\nX-Injected: yes", [PLAIN]),
    "status_bytes": answering(b"200 OK", [PLAIN]),
    "status_int": answering(200, [PLAIN]),
    "status_wide": answering("200 O\u212a", [PLAIN]),
    "status_interim": answering("103 Early Hints", [PLAIN]),
    "name_crlf": answering("200 OK", [PLAIN, ("X-A\r\nX-Injected", "yes")]),
    "name_space": answering("200 OK", [PLAIN, ("X A", "yes")]),
    "name_colon": answering("200 OK", [PLAIN, ("X-A:", "yes")]),
    "name_empty": answering("200 OK", [PLAIN, ("", "yes")]),
    "name_bytes": answering("200 OK", [PLAIN, (b"X-A", "yes")]),
    "name_wide": answering("200 OK", [PLAIN, ("X-\u212a", "yes")]),
    "value_crlf": answering("200 OK", [PLAIN, ("X-A", "a\r\nX-Injected: yes")]),
    "value_cr": answering("200 OK", [PLAIN, ("X-A", "a\rX-Injected: yes")]),
    "value_lf": answering("200 OK", [PLAIN, ("X-A", "a\nX-Injected: yes")]),
    "value_nul": answering("200 OK", [PLAIN, ("X-A", "a\0b")]),
    "value_bytes": answering("200 OK", [PLAIN, ("X-A", b"yes")]),
    "value_int": answering("200 OK", [PLAIN, ("X-A", 1)]),
    "value_none": answering("200 OK", [PLAIN, ("X-A", None)]),
    "value_wide": answering("200 OK", [PLAIN, ("X-A", "\u212a")]),
    "fields_none": answering("200 OK", None),
    "fields_triples": answering("200 OK", [("X-A", "yes", "no")]),
    "length_words": answering("200 OK", [PLAIN, ("Content-Length", "four")]),
    "length_negative": answering("200 OK", [PLAIN, ("Content-Length", "-4")]),
}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    return CASES[parameters(environ)["case"]](start_response)
