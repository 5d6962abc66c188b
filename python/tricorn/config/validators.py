"""Kinds of values: how a text or an object becomes the value of a setting.

A kind touches nothing outside of its argument. It refuses what it does not understand and never corrects it.
`Malformed` is for texts that are no such value at all (argparse's business, exit 2), `Refused` for values
that are understood and not allowed (exit 1); gunicorn makes the same difference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from shlex import split
from typing import Generic, Literal, Protocol, TypeVar

from tricorn.record import Record
from tricorn.spelling import hint

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Auto = Literal["auto"]


class Invalid(ValueError):
    """Says what was expected; the caller knows the name of the setting and what came."""


class Malformed(Invalid):
    """No such value at all: `eight` where a number is expected."""


class Refused(Invalid):
    """Understood, and not allowed: 0 workers."""


class Kind(Protocol[T_co]):
    @property
    def metavar(self) -> str: ...

    def parse(self, raw: object) -> T_co:
        """Makes the value from a text (command line, environment) or an object (config file)."""


MOST = (1 << 31) - 1
"""Largest C int. A larger number would be cut off, or refused by the kernel once the server runs."""


class Integer(Record):
    min: int = 0
    max: int = MOST
    metavar: str = "INT"
    zero: int = 0
    """Meaning of 0."""

    def parse(self, raw: object) -> int:
        value = _integer(raw) or self.zero
        _check_range(value, self.min, self.max)
        return value


class WorkerCount(Record):
    """A number of processes; `auto` is AUTO_COUNT until the configuration that has it knows better."""

    min: int = 1
    max: int = 4096
    metavar: str = "auto|INT"

    def parse(self, raw: object) -> int:
        if isinstance(raw, str) and raw.strip().lower() == "auto":
            return AUTO_COUNT
        try:
            value = _integer(raw)
        except Malformed as error:
            raise Malformed(f"{error} or auto") from None
        _check_range(value, self.min, self.max)
        return value


AUTO_COUNT = 0
"""Number of workers that stands for `auto`."""


class OrAuto(Record, Generic[T]):
    """A value of this kind, or the word that leaves it to the server."""

    kind: Kind[T]

    @property
    def metavar(self) -> str:
        return f"auto|{self.kind.metavar}"

    def parse(self, raw: object) -> T | Auto:
        if isinstance(raw, str) and raw.strip().lower() == "auto":
            return "auto"
        try:
            return self.kind.parse(raw)
        except Malformed as error:
            raise Malformed(f"{error} or auto") from None


YEAR = 31_536_000


class Seconds(Record):
    """A whole number stays an int, so that it prints as it was written."""

    min: float = 0
    max: float = 86_400
    metavar: str = "SECONDS"

    def parse(self, raw: object) -> float:
        value: float
        try:
            value = _integer(raw)
        except Malformed:
            value = _float(raw)
        _check_range(value, self.min, self.max)
        return value


class Milliseconds(Record):
    """A range such as `500-3000`, or one number; nothing, if the setting is off."""

    metavar: str = "MIN-MAX"

    def parse(self, raw: object) -> str | None:
        if raw is None or raw == "":
            return None
        least, dash, most = str(raw).partition("-")
        try:
            bounds = _integer(least), _integer(most if dash else least)
        except Malformed:
            raise Malformed("expected milliseconds such as 500-3000 or 1000") from None
        for bound in bounds:
            _check_range(bound, 0, HOUR)
        if bounds[0] > bounds[1]:
            raise Refused("expected the shorter time first, as in 500-3000")
        return f"{bounds[0]}-{bounds[1]}" if dash else f"{bounds[0]}"


def milliseconds(text: str | None) -> tuple[int, int] | None:
    """The bounds of a value of `Milliseconds`."""
    if text is None:
        return None
    least, dash, most = text.partition("-")
    return int(least), int(most if dash else least)


HOUR = 3_600_000
"""Milliseconds of an hour: longer than any client should wait before it comes again."""


class Bytes(Record):
    """A number of bytes, or one with a suffix: 512K, 2M, 1G (powers of 1024)."""

    min: int = 0
    max: int = 1 << 40
    metavar: str = "BYTES"

    def parse(self, raw: object) -> int:
        factor = 1
        if isinstance(raw, str):
            raw = raw.strip()
            factor = _FACTORS.get(raw[-1:].upper(), 1)
            raw = raw[:-1] if factor > 1 else raw
        try:
            value = _integer(raw) * factor
        except Malformed:
            raise Malformed("expected a number of bytes such as 65536, 512K or 2M") from None
        _check_range(value, self.min, self.max)
        return value


class Umask(Record):
    """A text that begins with 0 is octal, as in the shell."""

    metavar: str = "MASK"

    def parse(self, raw: object) -> int:
        if isinstance(raw, str) and raw.strip().startswith("0") and raw.strip().isdigit():
            try:
                value = int(raw.strip(), 8)
            except ValueError:
                raise Malformed("expected an octal number such as 022") from None
        else:
            value = _integer(raw)
        _check_range(value, 0, 0o777)
        return value


class Boolean(Record):
    metavar: str = "BOOL"

    def parse(self, raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        word = raw.strip().lower() if isinstance(raw, str) else None
        if word in ("true", "yes", "y", "on", "1"):
            return True
        if word in ("false", "no", "n", "off", "0"):
            return False
        raise Malformed("expected true or false")


class CanarySize(Record):
    """A number of workers, or a share of them: `10%`."""

    metavar: str = "INT|INT%"

    def parse(self, raw: object) -> int | str:
        if isinstance(raw, str) and raw.strip().endswith("%"):
            try:
                share = _integer(raw.strip()[:-1])
            except Malformed:
                raise Malformed("expected a number, or a share such as 10%") from None
            _check_range(share, 1, 100)
            return f"{share}%"
        try:
            value = _integer(raw)
        except Malformed as error:
            raise Malformed(f"{error} or a share such as 10%") from None
        _check_range(value, 0, 4096)
        return value


Mold = Literal["mold"]
MOLD: Mold = "mold"


class Preloading(Record):
    """The process that loads the application: each worker, the arbiter, or a mold."""

    metavar: str = "BOOL|mold"

    def parse(self, raw: object) -> bool | Mold:
        if isinstance(raw, str) and raw.strip().lower() == MOLD:
            return MOLD
        try:
            return Boolean().parse(raw)
        except Malformed as error:
            raise Malformed(f"{error} or {MOLD}") from None


class Text(Record):
    metavar: str = "STRING"

    def parse(self, raw: object) -> str:
        if isinstance(raw, os.PathLike):
            raw = os.fspath(raw)
        if not isinstance(raw, str):
            raise Malformed("expected a text")
        return raw.strip()


class OptionalText(Record):
    """A text; None and the empty text mean that there is none."""

    metavar: str = "STRING"

    def parse(self, raw: object) -> str | None:
        return None if raw is None else Text().parse(raw) or None


class Choice(Record):
    choices: tuple[str, ...]
    metavar: str = "STRING"
    also: tuple[tuple[str, str], ...] = ()
    """Other words, and the choices that they mean."""

    def parse(self, raw: object) -> str:
        value = Text().parse(raw)
        word = dict(self.also).get(value.lower(), value.lower())
        if word in self.choices:
            return word
        raise Refused(f"expected one of {', '.join(self.choices)}{hint(value, self.choices, otherwise='')}")


class Mode(Choice):
    """A choice that was a switch in earlier versions of gunicorn: True is `on`, False `off`."""

    on: str = ""
    off: str = ""

    def parse(self, raw: object) -> str:
        if raw is None or isinstance(raw, bool):
            return self.on if raw else self.off
        return Choice.parse(self, raw)


class TextList(Record):
    """Several texts. On the command line the flag is repeated; one text is split at `separator`."""

    separator: str | None = ","
    metavar: str = "STRING"

    def parse(self, raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            parts = raw.split(self.separator) if self.separator else raw.split()
            return tuple(part.strip() for part in parts if part.strip())
        if not isinstance(raw, Sequence):
            raise Malformed("expected a list of texts")
        return tuple(Text().parse(part) for part in raw)


class RisingNumbers(Record):
    """Positive whole numbers, each larger than the one before."""

    metavar: str = "INT"

    def parse(self, raw: object) -> tuple[int, ...]:
        if isinstance(raw, str):
            raw = raw.replace(",", " ").split()
        parts = raw if isinstance(raw, Sequence) else [raw]
        numbers = tuple(Integer(min=1).parse(part) for part in parts)
        if any(later <= earlier for earlier, later in pairwise(numbers)):
            raise Refused("expected numbers that rise")
        return numbers


class Choices(Record):
    """Some of several words. On the command line the flag is repeated; one text is split at commas."""

    choices: tuple[str, ...]
    metavar: str = "STRING"

    def parse(self, raw: object) -> tuple[str, ...]:
        return tuple(Choice(self.choices).parse(word) for word in TextList().parse(raw))


class UrlPath(Record):
    """The path of a URL as it is on the wire."""

    metavar: str = "PATH"
    empty: bool = False
    """An empty text switches off what is there."""

    def parse(self, raw: object) -> str:
        value = Text().parse(raw)
        if self.empty and not value:
            return value
        if not value.startswith("/") or not value.isascii() or not value.isprintable() or set(value) & set(" ?#"):
            raise Refused("expected a path such as /healthz")
        return value


class EnvAssignments(Record):
    """KEY=VALUE texts."""

    metavar: str = "ENV"

    def parse(self, raw: object) -> tuple[tuple[str, str], ...]:
        if isinstance(raw, str):
            raw = split(raw)
        elif isinstance(raw, Mapping):  # a table of pyproject.toml
            return tuple((Text().parse(key), Text().parse(value)) for key, value in raw.items())
        pairs = [text.partition("=") for text in TextList().parse(raw)]
        for key, equals, _ in pairs:
            if not key or not equals:
                raise Refused(f"expected KEY=VALUE, got {key + equals!r}")
        return tuple((key, value) for key, _, value in pairs)


class Networks(Record):
    """Addresses and CIDR blocks, comma separated, or `*` for all. 10.0.0.1/8 is a slip, and refused."""

    metavar: str = "ADDRESSES"

    def parse(self, raw: object) -> str:
        parts = TextList().parse(raw)
        if "*" in parts and len(parts) > 1:
            raise Refused("expected either * or a list of addresses, not both")
        if parts != ("*",):
            from ipaddress import ip_network  # costs 100 kB, and the default needs no check

            for part in parts:
                try:
                    ip_network(part)
                except ValueError as error:
                    raise Refused(f"expected IP addresses or networks: {error}") from None
        return ",".join(parts)


class HeaderValues(Record):
    """Header names and the value of each that counts. A text is `NAME=value,NAME=value`."""

    metavar: str = "HEADERS"

    def parse(self, raw: object) -> Mapping[str, str]:
        if isinstance(raw, str):
            raw = dict(part.split("=", 1) for part in TextList().parse(raw) if "=" in part)
        if not isinstance(raw, Mapping):
            raise Malformed("expected a dict of header names and values")
        return {Text().parse(name).upper(): Text().parse(value) for name, value in raw.items()}


def digits(text: str, most: int) -> int | None:
    """The number that these digits are; None if there are others than 0 to 9, or it is above `most`."""
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST):
        return None
    value = int(text)
    return value if value <= most else None


def _integer(raw: object) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, str):
        try:
            return int(raw, 0) if not raw.strip().isdigit() else int(raw)
        except ValueError:
            pass
    raise Malformed("expected a whole number")


def _float(raw: object) -> float:
    if isinstance(raw, (float, str)):
        try:
            value = float(raw)
        except ValueError:
            value = float("nan")
        if value == value:
            return value
    raise Malformed("expected a number of seconds")


def _check_range(value: float, low: float, high: float) -> None:
    if value < low:
        raise Refused(f"expected at least {low}")
    if value > high:
        raise Refused(f"expected at most {high}")


LONGEST = 20
"""Digits of a number: int() refuses thousands with an error of its own, and is slow before."""
_FACTORS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
