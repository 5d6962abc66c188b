"""Documents that a script renders from records: they are written, or compared with `--check`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
END = "<!-- Until here. -->\n"


def main(page: str, script: str, records: str, text: str) -> int:
    """Renders a part of a page. The exit status. `page` is a path from the root, as script and records are."""
    begin = f"<!-- Rendered by {script} from {records}: change that. -->\n"
    found = (ROOT / page).read_text()
    if begin not in found:
        raise SystemExit(f"{page}: expected the line {begin.strip()}")
    before, _, rest = found.partition(begin)
    _, _, after = rest.partition(END)
    return whole(script, {page: f"{before}{begin}\n{text}\n{END}{after}"})


def whole(script: str, files: Mapping[str, str]) -> int:
    """Renders whole files, by their paths from the root. The exit status."""
    status = 0
    for name, text in files.items():
        path = ROOT / name
        if sys.argv[1:] != ["--check"]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{name} is not what its sources say: run python {script}")
            status = 1
    return status
