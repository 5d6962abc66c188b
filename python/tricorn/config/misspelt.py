"""Which setting a name was probably meant to be. People have names of their own: only a slip is worth a warning."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from tricorn.config.registry import SETTINGS
from tricorn.config.setting import Setting


def candidates(name: str) -> Iterator[Setting[object]]:
    """The settings that `name`, in lower case, is a slip of: a flag's name, or another spelling."""
    for setting in SETTINGS:
        flags = {flag.lstrip("-").replace("-", "_") for flag in setting.flags}
        # Shorter ones, `env` or `name`, are what anybody calls a variable.
        if name in flags and len(name) > 4:
            yield setting
    bare = name.replace("_", "")
    distances = ((slips(bare, setting.name.replace("_", "")), setting) for setting in SETTINGS)
    distance, nearest = min(distances, key=itemgetter(0))
    if distance <= (1 if len(bare) < 8 else 2):
        yield nearest


def slips(one: str, other: str) -> int:
    """The edit distance, an exchange of neighbours being one slip."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, opposite in enumerate(other, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != opposite))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == opposite:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]
