"""Budgets that no linter has: files up to 500 lines, Rust types up to 15 fields.

ruff and clippy have budgets for functions (`C901`, `PLR0915`, `too_many_lines`), none for files; of a type's fields
clippy counts only booleans. Tests do not count here. Tables are listed with their reason in scripts/tidy-exempt.txt.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.check_circles import blank_rust, closing_brace  # noqa: E402

MAX_FILE = 500
MAX_FIELDS = 15
SOURCES = ("crates/", "python/", "packages/", "scripts/", "benches/", "fuzz/", "examples/")
FIELD = re.compile(r"^    (?:pub(?:\([^)]*\))?\s+)?\w+\s*:", re.MULTILINE)


def main() -> int:
    exempt = read_exemptions()
    gone = (path for path in exempt if not (ROOT / path.split("#")[0]).exists())
    found = [f"scripts/tidy-exempt.txt names {path}, which is gone" for path in gone]
    for path in tracked_files():
        found += check(path, (ROOT / path).read_text(), exempt)
    print("\n".join(found) or "tidy")
    return 1 if found else 0


def read_exemptions() -> set[str]:
    lines = (ROOT / "scripts/tidy-exempt.txt").read_text().splitlines()
    return {line.partition(": ")[0] for line in lines if line.strip() and not line.startswith("#")}


def tracked_files() -> list[str]:
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.py", "*.rs"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(
        path for path in listing if path.startswith(SOURCES) and "/tests" not in path and (ROOT / path).is_file()
    )


def check(path: str, text: str, exempt: set[str]) -> Iterator[str]:
    if path.endswith(".rs"):
        text = without_tests(blank_rust(text))
        yield from wide_types(path, text, exempt)
    length = text.count("\n")
    if length > MAX_FILE and path not in exempt:
        yield f"{path}: {length} lines; control flow fits in {MAX_FILE}"


def without_tests(text: str) -> str:
    while match := re.search(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod\s+\w+\s*\{", text):
        text = text[: match.start()] + text[closing_brace(text, match.end()) :]
    return text


def wide_types(path: str, text: str, exempt: set[str]) -> Iterator[str]:
    for match in re.finditer(r"\bstruct\s+(\w+)[^;({]*\{", text):
        fields = len(FIELD.findall(text[match.end() : closing_brace(text, match.end()) - 1]))
        if fields > MAX_FIELDS and f"{path}#{match.group(1)}" not in exempt:
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {match.group(1)} has {fields} fields; a type has up to {MAX_FIELDS}"


if __name__ == "__main__":
    sys.exit(main())
