"""Kinds of values that one setting has: certificates, HTTP versions, header names, functions that are offloaded."""

from __future__ import annotations

import os
import re

from tricorn.config.lookups import ExistingPaths
from tricorn.config.validators import Mode, Refused, Text, TextList
from tricorn.record import Record
from tricorn.spelling import hint

REQUIREMENTS = ("none", "optional", "required")
"""Meanings of the numbers of `cert_reqs`, in order."""
FORWARDED = "forwarded"
"""RFC 7239's, which says all that the others say."""
PROXY_HEADERS = (*(f"x-forwarded-{part}" for part in ("for", "proto", "host", "port", "by")), FORWARDED)
SESSION_NAMES = ("auto", "off", "mcp", "socketio", "peer")
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

HTTP_PROTOCOLS = ("h1", "h2")
CODINGS = ("zstd", "br", "gzip")
"""Content codings, in the order of preference that `on` has."""
AFFINITIES = ("any", "object", "process")
"""Threads that may make an offloaded call."""


class CertReqs(Record):
    """0, 1 or 2, as Python's ssl.CERT_NONE, CERT_OPTIONAL and CERT_REQUIRED, or a word for it."""

    metavar: str = "0|1|2"

    def parse(self, raw: object) -> int:
        if isinstance(raw, int) and not isinstance(raw, bool):
            number = int(raw)  # Python's is an IntEnum
        else:
            word = Text().parse(raw).lower().rpartition(".")[2].removeprefix("cert_")
            number = REQUIREMENTS.index(word) if word in REQUIREMENTS else int(word) if word.isdecimal() else -1
        if not 0 <= number < len(REQUIREMENTS):
            raise Refused("expected 0 (none), 1 (optional) or 2 (required)")
        return number


class CertificateFiles(ExistingPaths):
    """CERT or CERT:KEY; a path with a colon cannot be said."""

    def parse(self, raw: object) -> tuple[str, ...]:
        values = ExistingPaths.parse(self, raw)
        for value in values:
            certificate, colon, key = value.partition(":")
            if not certificate or (colon and not key) or ":" in key:
                raise Refused(f"expected CERT.pem or CERT.pem:KEY.pem, got {value!r}")
        return values

    def look_up(self, value: tuple[str, ...], directory: str) -> None:
        for pair in value:
            for path in filter(None, pair.split(":")):
                if not os.path.isfile(os.path.join(directory, path)):
                    raise Refused(f"{path!r} is no file that exists")


class HttpProtocols(Record):
    """Versions of HTTP, preferred first. None and an empty text mean HTTP/1, as with gunicorn."""

    metavar: str = "PROTOCOLS"

    def parse(self, raw: object) -> tuple[str, ...]:
        names = () if raw is None else tuple(name.lower() for name in TextList().parse(raw))
        for name in names:
            if name == "h3":
                raise Refused("HTTP/3 is not available in this version of tricorn; expected h1, h2 or both")
            if name not in HTTP_PROTOCOLS:
                raise Refused(f"expected h1, h2 or both, as in h2,h1, and {name!r} is neither")
        if len(set(names)) < len(names):
            raise Refused("expected each protocol once")
        return names or HTTP_PROTOCOLS[:1]


class Codings(Record):
    """Content codings, preferred first. `on` and true are all, `off` and an empty text none."""

    metavar: str = "CODINGS"

    def parse(self, raw: object) -> tuple[str, ...]:
        if raw is None or isinstance(raw, bool):
            return CODINGS if raw else ()
        names = tuple(dict.fromkeys(name.lower() for name in TextList().parse(raw)))
        if names in SWITCHES:
            return SWITCHES[names]
        for name in names:
            if name not in CODINGS:
                meant = hint(OTHER_NAMES.get(name, name), CODINGS, otherwise="")
                raise Refused(f"expected on, off, or some of {', '.join(CODINGS)}, and {name!r} is none of them{meant}")
        return names


SWITCHES = {("on",): CODINGS, ("true",): CODINGS, ("off",): (), ("false",): ()}
OTHER_NAMES = {"brotli": "br", "zstandard": "zstd", "zst": "zstd", "gz": "gzip"}


class MediaTypes(Record):
    """Media types in lower case: `text/html`, all of a kind (`text/*`), or all of a structure (`*+json`)."""

    metavar: str = "TYPE"

    def parse(self, raw: object) -> tuple[str, ...]:
        ranges = tuple(dict.fromkeys(text.lower() for text in TextList().parse(raw)))
        for text in ranges:
            kind, slash, subtype = text.partition("/")
            parts = (kind, "x" if subtype == "*" else subtype) if slash else (text.removeprefix("*+"),)
            is_range = bool(slash) or text.startswith("*+")
            if not is_range or not all(TOKEN.fullmatch(part) and "*" not in part for part in parts):
                raise Refused(f"expected media types such as text/html, text/* or *+json, and {text!r} is none")
        return ranges


class Affinity(Record):
    """Places where requests name their session. `off` and an empty text are no names; `auto` stands alone."""

    metavar: str = "NAMES"

    def parse(self, raw: object) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(_naming(text) for text in TextList().parse(raw)))
        for alone in ("auto", "off"):
            if alone in names and len(names) > 1:
                raise Refused(f"expected {alone} alone, or names without it")
        return () if names == ("off",) else names


def _naming(text: str) -> str:
    where, colon, name = text.partition(":")
    where = where.lower()
    if colon:
        if where in ("header", "cookie", "query") and TOKEN.fullmatch(name):
            return f"{where}:{name.lower() if where == 'header' else name}"
    elif where in SESSION_NAMES:
        return where
    raise Refused(
        f"expected auto, off, or some of mcp, socketio, header:NAME, cookie:NAME, query:NAME and peer, and {text!r} is "
        "none of them"
    )


class Cleartext(Mode):
    """How HTTP/2 begins without TLS. gunicorn's `upgrade` has an error message of its own."""

    def parse(self, raw: object) -> str:
        if isinstance(raw, str) and raw.strip().lower() == "upgrade":
            raise Refused(
                "HTTP/1.1 connections are not upgraded (Upgrade: h2c is deprecated by RFC 9113, section 3.1); "
                "expected off or prior-knowledge"
            )
        return Mode.parse(self, raw)


class ProxyHeaders(Record):
    """Names of `PROXY_HEADERS` in any case; `forwarded` only alone, since two fields could contradict one another."""

    metavar: str = "HEADERS"

    def parse(self, raw: object) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.lower() for name in TextList().parse(raw)))
        for name in names:
            if name not in PROXY_HEADERS:
                meant = hint(name, PROXY_HEADERS, otherwise="")
                raise Refused(f"expected some of {', '.join(PROXY_HEADERS)}, and {name!r} is none of them{meant}")
        if FORWARDED in names and len(names) > 1:
            others = ", ".join(name for name in names if name != FORWARDED)
            raise Refused(f"expected forwarded alone, or others without it: it says all that {others} could say")
        return names


class OffloadTargets(Record):
    """Names of functions and methods, and which threads may call them."""

    metavar: str = "TARGET"

    def parse(self, raw: object) -> tuple[str, ...]:
        targets = TextList().parse(raw)
        for target in targets:
            place, at, affinity = target.partition("@")
            module, colon, names = place.partition(":")
            parts = [*module.split("."), *names.split(".")]
            if not colon or names.count(".") > 1 or not all(part.isidentifier() for part in parts):
                raise Refused(f"expected package.module:function or package.module:Class.method, got {target!r}")
            if at and affinity not in AFFINITIES:
                raise Refused(
                    f"expected @{', @'.join(AFFINITIES)} at the end of {target!r}"
                    f"{hint(affinity, AFFINITIES, '@{}', otherwise='')}"
                )
        return targets


class WarmupTargets(Record):
    """Paths with their queries, or URLs, whose host and scheme the application sees."""

    metavar: str = "PATH"

    def parse(self, raw: object) -> tuple[str, ...]:
        targets = TextList().parse(raw)
        for target in targets:
            if not target or not target.isascii() or not re.fullmatch(WARMUP_TARGET, target):
                raise Refused(f"expected a path such as /login, or https://shop.example/login, got {target!r}")
        return targets


WARMUP_TARGET = r"(?:(https?)://([\w.\[\]:-]+))?(/[^\s#?]*)?(?:\?([^\s#]*))?"
"""Scheme, host with its port, path and query."""
