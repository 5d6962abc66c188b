"""HDR histograms: how often which latency occurred, to three digits, in microseconds.

The generator counts into buckets of which each doubling of the value has 1024 (below 2048 each microsecond has one).
They travel in HdrHistogram's format V2, compressed, in base64, which libraries of that name read in other languages.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

MICROSECOND = 1e-6

_V2, _V2_COMPRESSED = 0x1C849303, 0x1C849304
_HEADER = struct.Struct(">iiiiqqd")
"""Cookie, bytes of the counts, offset of normalization, significant digits, lowest and highest value, ratio."""
_COMPRESSED = struct.Struct(">ii")
_HALF = 1024
"""Buckets of a doubling: 2·10³ distinct values, rounded up to a power of two, halved."""
_HALF_BITS = 10
_DIGITS = 3
_HIGHEST = 3_600_000_000


class Bucket(NamedTuple):
    """Latencies up to `end`, in seconds, and above the end of the bucket before."""

    end: float
    number: int


class Histogram:
    """Latencies in seconds."""

    def __init__(self, counts: list[int] | None = None) -> None:
        self._counts = counts or []

    @classmethod
    def decode(cls, text: str) -> Histogram:
        """Reads HdrHistogram's V2, compressed, in base64. Raises ValueError for anything else."""
        try:
            packed = base64.b64decode(text, validate=True)
            cookie, length = _COMPRESSED.unpack_from(packed)
            plain = zlib.decompress(packed[_COMPRESSED.size : _COMPRESSED.size + length])
            inner, size, _, digits, *_ = _HEADER.unpack_from(plain)
        except (struct.error, zlib.error) as error:
            raise ValueError(f"not an HDR histogram: {error}") from None
        # The last byte of a cookie says how wide counts are, which V2 does not need.
        if cookie & ~0xF0 != _V2_COMPRESSED & ~0xF0 or inner & ~0xF0 != _V2 & ~0xF0 or digits != _DIGITS:
            raise ValueError("not an HDR histogram of version 2 with three digits")
        return cls(list(_counts(plain[_HEADER.size : _HEADER.size + size])))

    @classmethod
    def of(cls, latencies: Iterable[tuple[float, int]]) -> Histogram:
        """Makes a histogram of latencies in seconds, and how often each occurred."""
        counts: list[int] = []
        for seconds, number in latencies:
            index = _index(round(seconds / MICROSECOND))
            counts += [0] * (index + 1 - len(counts))
            counts[index] += number
        return cls(counts)

    def encode(self) -> str:
        body = _packed(self._counts)
        plain = _HEADER.pack(_V2 | 0x10, len(body), 0, _DIGITS, 1, _HIGHEST, 1.0) + body
        packed = zlib.compress(plain)
        return base64.b64encode(_COMPRESSED.pack(_V2_COMPRESSED | 0x10, len(packed)) + packed).decode("ascii")

    @property
    def count(self) -> int:
        return sum(self._counts)

    def merge(self, other: Histogram) -> Histogram:
        """Returns the sum of both."""
        length = max(len(self._counts), len(other._counts))
        mine, others = (counts + [0] * (length - len(counts)) for counts in (self._counts, other._counts))
        return Histogram([one + another for one, another in zip(mine, others, strict=True)])

    def percentile(self, percent: float) -> float:
        """The latency that so many percent of all are not above; 0.0 of an empty histogram."""
        total = self.count
        rank = max(1, -(-total * percent // 100))
        for index, reached in enumerate(accumulate(self._counts)):
            if reached >= rank and total:
                return _highest(index) * MICROSECOND
        return 0.0

    def count_above(self, seconds: float) -> int:
        """Counts latencies in buckets that begin above so many seconds."""
        return sum(count for index, count in enumerate(self._counts) if _lowest(index) * MICROSECOND > seconds)

    def buckets(self) -> Iterator[Bucket]:
        """Yields the buckets that are not empty, in order."""
        for index, count in enumerate(self._counts):
            if count:
                yield Bucket(_highest(index) * MICROSECOND, count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and list(self.buckets()) == list(other.buckets())

    def __hash__(self) -> int:
        return hash(tuple(self.buckets()))


def _index(value: int) -> int:
    """The bucket of a value, in microseconds."""
    doubling = max(0, value.bit_length() - _HALF_BITS - 1)
    return (doubling << _HALF_BITS) + (value >> doubling)


def _lowest(index: int) -> int:
    """The lowest value of a bucket."""
    doubling = max(0, (index >> _HALF_BITS) - 1)
    return (index - (doubling << _HALF_BITS)) << doubling


def _highest(index: int) -> int:
    return _lowest(index + 1) - 1


def _counts(data: bytes) -> Iterator[int]:
    """ZigZag LEB128 numbers: counts, and negative ones for as many empty buckets."""
    position = 0
    while position < len(data):
        number = shift = 0
        while True:
            if position == len(data):
                raise ValueError("not an HDR histogram: it ends within a number")
            byte = data[position]
            position += 1
            if shift == 56:  # the ninth byte has eight bits
                number |= byte << shift
                break
            number |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        value = (number >> 1) ^ -(number & 1)
        if value < 0:
            yield from (0,) * -value
        else:
            yield value


def _packed(counts: list[int]) -> bytes:
    data = bytearray()
    empty = 0
    for count in counts:
        if not count:
            empty += 1
            continue
        if empty:
            data += _zigzag(-empty)
            empty = 0
        data += _zigzag(count)
    return bytes(data)


def _zigzag(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    data = bytearray()
    while len(data) < 8 and number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number & 0xFF)
    return bytes(data)
