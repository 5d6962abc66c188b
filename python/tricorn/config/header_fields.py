"""Kinds of values that end up in the head of a response, where nothing may end a line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tricorn.config.validators import Malformed, Refused
from tricorn.record import Record

DEFAULT_SERVER = "tricorn"

# RFC 9110 section 5.6.2 (token) and 5.5 (field-value), of ASCII.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")

_DECIDED_BY_THE_SERVER = frozenset(
    ("connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)


class ServerName(Record):
    """The value of the field Server; empty: there is none."""

    metavar: str = "STRING"

    def parse(self, raw: object) -> str:
        if raw is None or raw is False:
            return ""
        if raw is True:
            return DEFAULT_SERVER
        if not isinstance(raw, str):
            raise Malformed("expected a text, true or false")
        word = raw.strip()
        if word.lower() in ("true", "false"):
            return self.parse(word.lower() == "true")
        return _value(word)


class HeaderFields(Record):
    """Names and values: texts with a colon, pairs, or a dict."""

    metavar: str = "NAME:VALUE"

    def parse(self, raw: object) -> tuple[tuple[str, str], ...]:
        if isinstance(raw, str):
            raw = [line for line in raw.splitlines() if line.strip()]
        elif isinstance(raw, Mapping):
            raw = list(raw.items())
        if not isinstance(raw, Sequence):
            raise Malformed("expected texts such as 'X-Frame-Options: DENY'")
        return tuple(_field(each) for each in raw)


def _field(raw: object) -> tuple[str, str]:
    if isinstance(raw, str):
        name, colon, value = raw.partition(":")
        if not colon:
            raise Refused(f"expected NAME:VALUE, got {raw!r}")
    elif isinstance(raw, Sequence) and len(raw) == 2 and all(isinstance(part, str) for part in raw):
        name, value = raw
    else:
        raise Malformed("expected texts such as 'X-Frame-Options: DENY'")
    name = name.strip()
    if not _TOKEN.fullmatch(name):
        raise Refused(f"{name!r} is not the name of a header field")
    if name.lower() in _DECIDED_BY_THE_SERVER:
        raise Refused(f"{name} is decided by the server for each response")
    if name.lower() == "date":
        raise Refused("Date is the server's; leave it out with date_header")
    return name, _value(value.strip())


def _value(text: str) -> str:
    if not _VALUE.fullmatch(text):
        raise Refused("expected printable ASCII in a header field")
    return text
