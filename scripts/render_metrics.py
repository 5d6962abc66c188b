"""Renders the table of metrics in docs/OPERATIONS.md from the records in crates/tricorn-io/src/metrics/families.rs.

python scripts/render_metrics.py           writes it
python scripts/render_metrics.py --check   fails if it is not what the records say
"""

from __future__ import annotations

import sys
from pathlib import Path

from tricorn.metrics.scoreboard import metric_families

PAGE = Path(__file__).resolve().parent.parent / "docs" / "OPERATIONS.md"
BEGIN = "<!-- Rendered by scripts/render_metrics.py from crates/tricorn-io/src/metrics/families.rs: change that. -->\n"
END = "<!-- Until here. -->\n"


def main() -> int:
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    rendered = f"{before}{BEGIN}\n{render()}\n{END}{after}"
    if sys.argv[1:] == ["--check"]:
        if page == rendered:
            return 0
        print("docs/OPERATIONS.md is not what the records say: run python scripts/render_metrics.py")
        return 1
    PAGE.write_text(rendered)
    return 0


def render() -> str:
    lines = ["| Metric | Kind | Label | |", "|---|---|---|---|"]
    for name, kind, label, text in metric_families():
        suffix = "_total" if kind == "counter" else "_info" if kind == "info" else ""
        full = "_".join(filter(None, ("tricorn", name))) + suffix
        lines.append(f"| `{full}` | {kind} | {f'`{label}`' if label else ''} | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
