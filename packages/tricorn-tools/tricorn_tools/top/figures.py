"""Numbers in few characters. What is no plausible number is a question mark, never a wide cell."""

from __future__ import annotations

UNKNOWN = "?"
NOTHING = "-"
_UNITS = "KMGTP"


def count(value: float | None) -> str:
    """Such as 231, 9,999, 12.3k or 4.5M."""
    if value is None:
        return UNKNOWN
    if 0 <= value < 9_999.5:
        return f"{value:,.0f}"
    return _scaled(value, 1000.0, "kMGTP")


def size(bytes_: float | None) -> str:
    """Such as 900K, 182M or 1.2G."""
    if bytes_ is None:
        return NOTHING
    if 0 <= bytes_ < 1023.5:
        return f"{bytes_:.0f}"
    return _scaled(bytes_, 1024.0, _UNITS)


def _scaled(value: float, base: float, units: str) -> str:
    scaled = value
    for unit in units:
        scaled /= base
        if 0 <= scaled < 9.95:
            return f"{scaled:.1f}{unit}"
        if 0 <= scaled < base - 0.5:
            return f"{scaled:.0f}{unit}"
    return UNKNOWN


def milliseconds(seconds: float | None) -> str:
    """Such as 0.41, 3.1, 41; from ten seconds on 38s, 12m."""
    if seconds is None:
        return NOTHING
    millis = seconds * 1000
    if millis < 0.995:
        return f"{millis:.2f}"
    if millis < 9.95:
        return f"{millis:.1f}"
    return f"{millis:.0f}" if millis < 9_999.5 else span(seconds)


def span(seconds: float) -> str:
    """Such as 38s, 12m, 4h, 3d."""
    for most, length, unit in ((100, 1, "s"), (6_000, 60, "m"), (172_800, 3600, "h"), (864_000_000, 86_400, "d")):
        if 0 <= seconds < most:
            return f"{seconds / length:.0f}{unit}"
    return UNKNOWN


def long_span(seconds: float) -> str:
    """Such as 38 s, 12 m 5 s, 4 h 2 m, 3 d 4 h."""
    if not 0 <= seconds < 864_000_000:
        return UNKNOWN
    whole = int(seconds)
    for length, unit, part, below in ((86_400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= length:
            return f"{whole // length} {unit} {whole % length // part} {below}"
    return f"{whole} s"


def percent(share: float | None, digits: int = 0) -> str:
    """Such as 97 %; a dash where there is nothing of which it could be a share."""
    return NOTHING if share is None else f"{min(share, 9.99) * 100:.{digits}f} %"
