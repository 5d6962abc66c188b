"""Renders the table of metrics in docs/guides/operations.md from crates/tricorn-io/src/metrics/families.rs.

python scripts/render_metrics.py           writes it
python scripts/render_metrics.py --check   fails if it is not what the records say
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tricorn.metrics.scoreboard import metric_families

from scripts import rendered


def render() -> str:
    lines = ["| Metric | Kind | Label | |", "|---|---|---|---|"]
    for name, kind, label, text in metric_families():
        suffix = "_total" if kind == "counter" else "_info" if kind == "info" else ""
        full = "_".join(filter(None, ("tricorn", name))) + suffix
        lines.append(f"| `{full}` | {kind} | {f'`{label}`' if label else ''} | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(
        rendered.main(
            "docs/guides/operations.md",
            "scripts/render_metrics.py",
            "crates/tricorn-io/src/metrics/families.rs",
            render(),
        )
    )
