"""Kinds of values that settings of TLS have."""

from __future__ import annotations

import os

from tricorn.config.lookups import ExistingPaths
from tricorn.config.validators import Refused, Text
from tricorn.record import Record


class CertReqs(Record):
    """0, 1 or 2, as Python's ssl.CERT_NONE, CERT_OPTIONAL and CERT_REQUIRED, or a word for it."""

    metavar: str = "0|1|2"

    def parse(self, raw: object) -> int:
        if isinstance(raw, int) and not isinstance(raw, bool):
            number = int(raw)  # Python's is an IntEnum
        else:
            word = Text().parse(raw).lower().rpartition(".")[2].removeprefix("cert_")
            number = WORDS.index(word) if word in WORDS else int(word) if word.isdecimal() else -1
        if not 0 <= number < len(WORDS):
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


WORDS = ("none", "optional", "required")
"""Meanings of the numbers, in order."""
