"""The part of a document that a script renders from records: it is written anew, or compared with `--check`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
END = "<!-- Until here. -->\n"


def main(page: str, script: str, records: str, text: str) -> int:
    """The exit status. `page` is a path from the root of the repository, as the names of script and records are."""
    begin = f"<!-- Rendered by {script} from {records}: change that. -->\n"
    path = ROOT / page
    found = path.read_text()
    if begin not in found:
        raise SystemExit(f"{page}: expected the line {begin.strip()}")
    before, _, rest = found.partition(begin)
    _, _, after = rest.partition(END)
    rendered = f"{before}{begin}\n{text}\n{END}{after}"
    if sys.argv[1:] != ["--check"]:
        path.write_text(rendered)
    elif found != rendered:
        print(f"{page} is not what the records say: run python {script}")
        return 1
    return 0
