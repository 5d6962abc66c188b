"""The header fields by which front ends tell of a request, as the setting `trusted_proxy_headers` names them."""

from __future__ import annotations

from tricorn.config.validators import Refused, TextList
from tricorn.record import Record
from tricorn.spelling import hint

FORWARDED = "forwarded"
"""RFC 7239's, which says all that the others say."""

NAMES = (*(f"x-forwarded-{part}" for part in ("for", "proto", "host", "port", "by")), FORWARDED)


class ProxyHeaders(Record):
    """Names of `NAMES` in any case; `forwarded` only alone, since two fields could contradict one another."""

    metavar: str = "HEADERS"

    def parse(self, raw: object) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.lower() for name in TextList().parse(raw)))
        for name in names:
            if name not in NAMES:
                meant = hint(name, NAMES, otherwise="")
                raise Refused(f"expected some of {', '.join(NAMES)}, and {name!r} is none of them{meant}")
        if FORWARDED in names and len(names) > 1:
            others = ", ".join(name for name in names if name != FORWARDED)
            raise Refused(f"expected forwarded alone, or others without it: it says all that {others} could say")
        return names
