"""Renders the table of drivers in docs/how-it-works/greenlets.md from tricorn_green/drivers/table.py.

python scripts/render_drivers.py           writes it
python scripts/render_drivers.py --check   fails if it is not what the records say
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tricorn_green.drivers.records import Blocks, Check, Driver, Hook, Treatment
from tricorn_green.drivers.table import DRIVERS

from scripts import rendered


def render() -> str:
    lines = [
        "| Library | For | gevent | eventlet | What is done, or what to do | With `doctor = heal` | On an event loop |",
        "|---|---|---|---|---|---|---|",
    ]
    for driver in sorted(DRIVERS, key=lambda driver: driver.title.lower()):
        cells = [driver.title, driver.what, verdict(driver.gevent), verdict(driver.eventlet), advice(driver)]
        cells += [healed(driver.gevent), driver.library.loop]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def verdict(treatment: Treatment) -> str:
    return f"**blocks** {treatment.when}".strip() if isinstance(treatment, Blocks) else "cooperative"


def advice(driver: Driver) -> str:
    if driver.gevent == driver.eventlet:
        return text(driver.gevent)
    return f"gevent: {text(driver.gevent)} eventlet: {text(driver.eventlet)}"


def healed(treatment: Treatment) -> str:
    """The same for both: threads know no hubs."""
    if not isinstance(treatment, Blocks) or treatment.cure is None:
        return ""
    cure = treatment.cure
    untested = "" if cure.is_proven else " (Not tested with the library itself.)"
    return f"{cure.how[0].upper()}{cure.how[1:]}{untested}"


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
    sys.exit(
        rendered.main(
            "docs/how-it-works/greenlets.md",
            "scripts/render_drivers.py",
            "packages/tricorn-green/tricorn_green/drivers/table.py",
            render(),
        )
    )
