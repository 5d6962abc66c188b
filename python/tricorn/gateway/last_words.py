"""One line that says what a traceback is about: the exception, and for a group its members.

```text
    + Exception Group Traceback (most recent call last):
    |   File …                                                     Traceback (most recent call last):
    | ExceptionGroup: unhandled errors (2 sub-exceptions)            File …
    +-+---------------- 1 ----------------                         ValidationError: 1 validation error for Settings
      | OSError: no database                                       database_url
      +---------------- 2 ----------------                           Field required
      | ValueError: no port
      +------------------------------------
```

Frames are indented. The line of the exception follows them, before further lines of its message and its notes. Text is
what the server has: Starlette sends the traceback of a lifespan that fails as the message of `lifespan.startup.failed`.
"""

from __future__ import annotations

import re
from itertools import dropwhile

_HEADER = "Traceback (most recent call last):"
_GROUP = re.compile(r"^ *\+ Exception Group ", re.MULTILINE)
_MARGIN = re.compile(r"^ *[|+] ", re.MULTILINE)
_RULE = re.compile(r"^ *(\+-[+-]*)(?:| [\d.]+ -+)\n", re.MULTILINE)
"""A line before, between and after the members of a group; the first one begins with `+-+`."""


def last_words(text: str) -> str:
    """Returns the exception of a traceback, for a group with its members; for any other text the last line."""
    text = text.rstrip() + "\n"
    first, *members = _RULE.split(text[_last_group(text) :])
    if not members or members[-1].strip():  # no group, or another exception was raised while it was handled
        lines = _lines((members or [first])[-1])
        return lines[0 if _HEADER in text else -1] if lines else ""
    found = _lines(_MARGIN.sub("", first))[:1]
    for rule, member in zip(members[::2], members[1::2], strict=True):
        if lines := _lines(_MARGIN.sub("", member)):
            found += [": " if rule.startswith("+-+") else "; ", lines[0]]
    return "".join(found)


def _last_group(text: str) -> int:
    return max((match.start() for match in _GROUP.finditer(text)), default=0)


def _lines(text: str) -> list[str]:
    """Returns the lines from that of the exception on, if this is a traceback."""
    _, header, after = text.rpartition(_HEADER + "\n")
    lines = [line for line in after.splitlines() if line.strip()]
    return list(dropwhile(lambda line: line.startswith(" "), lines)) if header else lines
