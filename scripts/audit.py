"""Asks the OSV database whether a version that is locked here has a known vulnerability.

    python scripts/audit.py [--quick]

Cargo.lock and the files of requirements/ that pin versions are asked about in one request: OSV holds the advisories of
RustSec and those of the Python packages. Where the database cannot be reached nothing is known, and that is what is
said, with status 75; a vulnerability is status 1. `--quick` gives up after two seconds.

A finding that does not concern tricorn is listed in ACCEPTED with the reason.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DATABASE = os.environ.get("TRICORN_AUDIT_DATABASE", "https://api.osv.dev")
PINNED = ("build.txt", "lint.txt", "test.txt")
UNKNOWN = 75
"""EX_TEMPFAIL: neither good nor bad, but not asked."""

ACCEPTED: dict[str, str] = {}


class Package(NamedTuple):
    ecosystem: str
    name: str
    version: str


def locked_crates(text: str) -> list[Package]:
    """The packages of a Cargo.lock that come from a registry. Python 3.10 has no parser for TOML."""
    found = re.findall(r'^name = "(.+)"\nversion = "(.+)"\nsource = ', text, re.MULTILINE)
    return [Package("crates.io", name, version) for name, version in found]


def pinned(text: str) -> list[Package]:
    """The lines `name==version` of a requirements file, whatever Python they are for."""
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==([^\s;]+)", text, re.MULTILINE)
    return [Package("PyPI", name, version) for name, version in found]


def everything() -> list[Package]:
    packages = locked_crates((ROOT / "Cargo.lock").read_text())
    for name in PINNED:
        packages += pinned((ROOT / "requirements" / name).read_text())
    return sorted(set(packages))


def ask(packages: list[Package], timeout: float) -> list[list[str]]:
    """For each package, the identifiers of its advisories. Raises OSError where the database does not answer."""
    queries = [{"package": {"ecosystem": p.ecosystem, "name": p.name}, "version": p.version} for p in packages]
    request = urllib.request.Request(
        f"{DATABASE}/v1/querybatch",
        json.dumps({"queries": queries}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        try:
            results: list[dict[str, Any]] = json.load(answer)["results"]
            found = [[each["id"] for each in result.get("vulns", [])] for result in results]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OSError(f"an answer that is not the database's ({error!r})") from None
    if len(found) != len(packages):
        raise OSError(f"{len(found)} answers to {len(packages)} questions")
    return found


def main() -> int:
    packages = everything()
    try:
        answers = ask(packages, timeout=2 if "--quick" in sys.argv else 30)
    except OSError as error:
        print(
            f"{DATABASE} cannot be asked from here ({error}): whether a version has a known vulnerability is unknown."
        )
        return UNKNOWN
    findings = [
        f"{package.name} {package.version} ({package.ecosystem}): https://osv.dev/vulnerability/{ident}"
        for package, idents in zip(packages, answers, strict=True)
        for ident in idents
        if ident not in ACCEPTED
    ]
    print("\n".join(findings) or f"{len(packages)} locked versions, no known vulnerability")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
