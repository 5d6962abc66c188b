"""Durations as Go writes them, which hey reads: 10s, 1m30s, 500ms; a number alone means seconds."""

from __future__ import annotations

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|us|µs|s)")


def parse(text: str) -> float:
    """Seconds; ValueError for anything that is no duration."""
    try:
        seconds = float(text)
    except ValueError:
        parts = _PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            raise ValueError(f"expected a duration such as 10s, 1m30s or 500ms, got {text!r}") from None
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"expected a duration such as 10s, 1m30s or 500ms, got {text!r}")
    return seconds


def parse_range(text: str) -> tuple[float, float]:
    """LOW-HIGH, or one duration that is both."""
    low, found, high = text.partition("-")
    bounds = parse(low), parse(high) if found else parse(low)
    if bounds[0] > bounds[1]:
        raise ValueError(f"expected the shorter duration first, got {text!r}")
    return bounds


def parse_ramp(text: str) -> tuple[tuple[float, float | None], ...]:
    """DURATION:RATE,…: seconds, and the rate at their end. Without a rate it is to be what was asked for elsewhere."""
    stages = []
    for part in text.split(","):
        duration, found, rate = part.partition(":")
        if found and not _is_rate(rate):
            raise ValueError(f"expected DURATION:RATE, such as 30s:1000, got {part!r}")
        stages.append((parse(duration), float(rate) if found else None))
    return tuple(stages)


def _is_rate(text: str) -> bool:
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False
