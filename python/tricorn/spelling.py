"""Suggestions for misspelled words."""

from __future__ import annotations

from collections.abc import Iterable


def near(word: str, known: Iterable[str]) -> list[str]:
    """The known words that `word` is a slip of, the nearest first. Case, dashes and underscores do not count."""
    bare = _bare(word)
    most = 1 if len(bare) < LONG else 2
    found = [(slips(bare, other), each) for each in known if abs(len(other := _bare(each)) - len(bare)) <= most]
    return [each for distance, each in sorted(found, key=lambda pair: pair[0]) if distance <= most]


def hint(word: str, known: Iterable[str], shown: str = "{!r}", *, otherwise: str = ".") -> str:
    """The end of a sentence that refuses `word`: the nearest known one, written as `shown`, if there is one."""
    meant = near(word, known)
    return f"; did you mean {shown.format(meant[0])}?" if meant else otherwise


def slips(one: str, other: str) -> int:
    """The edit distance, an exchange of neighbours being one slip (Damerau and Levenshtein)."""
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


def _bare(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")


LONG = 8
"""From so many letters on a word may have two slips: people have short names of their own."""
