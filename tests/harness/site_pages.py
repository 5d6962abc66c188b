"""The documentation site as `make docs` has built it: its pages, and its search."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SITE = ROOT / "dist/docs"
PYTHON = ROOT / ".venvs/docs/bin/python"


def site() -> Path:
    """The directory of the site, or the test is skipped."""
    if not (SITE / "index.html").exists() or not PYTHON.exists():
        pytest.skip("needs the site: make docs")
    return SITE


@cache
def index() -> dict[str, Any]:
    """Sphinx's search index: terms, titles and the pages that have them."""
    text = (site() / "searchindex.js").read_text()
    found: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return found


def words(text: str) -> list[str]:
    """The words that a search for a text looks for, as Sphinx's searchtools.js takes them apart."""
    return re.findall(r"\w+", text.lower())


def stems(texts: list[str]) -> dict[str, list[str]]:
    """The stems of the words of texts, by Sphinx's own stemmer for English; without words that it does not index."""
    program = (
        "import json, sys\n"
        "from sphinx.search.en import SearchEnglish\n"
        "english = SearchEnglish({})\n"
        "given = json.load(sys.stdin)\n"
        "stop = set(english.stopwords)\n"
        "def stems(words): return [english.stem(w) for w in words if w not in stop and english.word_filter(w)]\n"
        "print(json.dumps({text: stems(words) for text, words in given.items()}))\n"
    )
    site()
    given = json.dumps({text: words(text) for text in texts})
    done = subprocess.run([PYTHON, "-c", program], input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def pages_with(stemmed: list[str]) -> set[str]:
    """The pages on which all of these stand, in the text or in a title."""
    found = index()
    names = found["docnames"]
    sets = []
    for stem in stemmed:
        numbers: set[int] = set()
        for table in ("terms", "titleterms"):
            place = found[table].get(stem, [])
            numbers |= {place} if isinstance(place, int) else set(place)
        sets.append({names[number] for number in numbers})
    return set.intersection(*sets) if sets else set()
