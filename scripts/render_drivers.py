"""Renders the table in docs/GREENLETS.md from the records in python/tricorn/green/drivers/table.py.

python scripts/render_drivers.py           writes it
python scripts/render_drivers.py --check   fails if it is not what the records say
"""

from __future__ import annotations

import sys
from pathlib import Path

from tricorn.green.drivers.records import Blocks, Check, Driver, Hook, Treatment
from tricorn.green.drivers.table import DRIVERS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "GREENLETS.md"
BEGIN = "<!-- Rendered by scripts/render_drivers.py from python/tricorn/green/drivers/table.py: change that. -->\n"
END = "<!-- Until here. -->\n"


def main() -> int:
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    rendered = f"{before}{BEGIN}\n{render()}\n{END}{after}"
    if sys.argv[1:] == ["--check"]:
        if page == rendered:
            return 0
        print("docs/GREENLETS.md is not what the records say: run python scripts/render_drivers.py")
        return 1
    PAGE.write_text(rendered)
    return 0


def render() -> str:
    lines = ["| Library | For | gevent | eventlet | What is done, or what to do |", "|---|---|---|---|---|"]
    for driver in sorted(DRIVERS, key=lambda driver: driver.title.lower()):
        cells = [driver.title, driver.what, verdict(driver.gevent), verdict(driver.eventlet), advice(driver)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def verdict(treatment: Treatment) -> str:
    return f"**blocks** {treatment.when}".strip() if isinstance(treatment, Blocks) else "cooperative"


def advice(driver: Driver) -> str:
    if driver.gevent == driver.eventlet:
        return text(driver.gevent)
    return f"gevent: {text(driver.gevent)} eventlet: {text(driver.eventlet)}"


def text(treatment: Treatment) -> str:
    match treatment:
        case Hook(_, how):
            return f"{how[0].upper()}{how[1:]}."
        case Check(_, condition):
            return f"{condition[0].upper()}{condition[1:]}."
        case Blocks(remedy):
            return remedy
    return ""


if __name__ == "__main__":
    sys.exit(main())
