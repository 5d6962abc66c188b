"""Renders the table of words in docs/internals/scoreboard.md from the core's own table.

python scripts/render_scoreboard.py           writes it
python scripts/render_scoreboard.py --check   fails if it is not what the core says
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tricorn.metrics.scoreboard import scoreboard_words

from scripts import rendered


def table() -> str:
    rows = [_row(*word) for word in scoreboard_words()]
    return "\n".join(("| Words | Role | Figure | Content |", "|---|---|---|---|", *rows)) + "\n"


def _row(first: int, count: int, role: str, figure: str, text: str) -> str:
    words = str(first) if count == 1 else f"{first} – {first + count - 1}"
    name = f"`{figure}`" if figure else ""
    return f"| {words} | {role if role != 'own' else ''} | {name} | {text.rstrip('.')} |"


if __name__ == "__main__":
    source = "crates/tricorn-figures/src/scoreboard/words.rs"
    sys.exit(rendered.main("docs/internals/scoreboard.md", "scripts/render_scoreboard.py", source, table()))
